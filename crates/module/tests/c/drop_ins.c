/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside a configuration, which add to it, while a process runs as well. */
#include "common.h"
#include <sys/stat.h>

static char path[5000], fresh[5010];

/* As a package manager does it: the whole file at once. */
static void configure(const char *name, const char *text)
{
	snprintf(path, sizeof path, "%s/.config/metaslot/%s", getenv("HOME"), name);
	snprintf(fresh, sizeof fresh, "%s.new", path);
	FILE *file = fopen(fresh, "w");
	CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(rename(fresh, path) == 0);
}

static void make_directory(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", getenv("HOME"), name);
	CHECK(mkdir(path, 0700) == 0);
}

static CK_ULONG slots(void)
{
	CK_ULONG count;
	OK(p11->C_GetSlotList(CK_FALSE, NULL, &count));
	return count;
}

static CK_SESSION_HANDLE session;

static CK_RV md5(void)
{
	CK_MECHANISM mechanism = {CKM_MD5, NULL, 0};
	CK_BYTE hash[16];
	CK_ULONG length = sizeof hash;
	CK_RV rv = p11->C_DigestInit(session, &mechanism);
	return rv == CKR_OK ? p11->C_Digest(session, (CK_BYTE *)"abc", 3, hash, &length) : rv;
}

/* Calls until it is answered so. */
static void md5_becomes(CK_RV wanted)
{
	time_t start = time(NULL);
	while (md5() != wanted) {
		if (time(NULL) - start > 60) FAIL("0x%lx is never answered", wanted);
		pause_ms(1);
	}
}

static void said(const char *wanted)
{
	CK_INTERFACE *interface;
	CK_UTF8CHAR text[512];
	CK_ULONG length = sizeof text - 1;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	OK(((METASLOT_FUNCTION_LIST *)interface->pFunctionList)->LastError(text, &length));
	text[length] = 0;
	if (strstr((char *)text, wanted) == NULL) FAIL("\"%s\" is not in \"%s\"", wanted, text);
}

static const char without_md5[] =
	"[provider.awslc]\ndisable = [\"CKM_MD5\"]\n[provider.lanes]\ndisable = [\"CKM_MD5\"]\n";

int main(void)
{
	load();
	make_directory(".config");
	make_directory(".config/metaslot");
	make_directory(".config/metaslot/metaslot.d");

	/* Without a file: the usual token, whatever else is said. */
	configure("metaslot.d/50-md5.toml", without_md5);
	OK(p11->C_Initialize(NULL));
	CHECK(slots() == 1);
	session = open_session();
	EXPECT(md5(), CKR_MECHANISM_INVALID);
	OK(p11->C_Finalize(NULL));

	configure("metaslot.toml", "[[token]]\npath = \"/nowhere/one.db\"\n");
	configure("metaslot.d/10-token.toml", "[[token]]\npath = \"/nowhere/two.db\"\ndescription = \"two\"\n");
	OK(p11->C_Initialize(NULL));
	CHECK(slots() == 2);
	CK_SLOT_INFO info;
	OK(p11->C_GetSlotInfo(1, &info));
	CHECK(memcmp(info.slotDescription, "two ", 4) == 0);
	session = open_session();
	EXPECT(md5(), CKR_MECHANISM_INVALID);
	/* One that goes says nothing any more, and one that comes is heard. */
	configure("metaslot.d/50-md5.toml", "");
	CHECK(unlink(path) == 0);
	md5_becomes(CKR_OK);
	configure("metaslot.d/60-md5.toml", without_md5);
	md5_becomes(CKR_MECHANISM_INVALID);
	/* A wrong one changes nothing. */
	configure("metaslot.d/60-md5.toml", "\ncolour = 3\n");
	for (int call = 0; call < 60; call++) {
		EXPECT(md5(), CKR_MECHANISM_INVALID);
		pause_ms(10);
	}
	OK(p11->C_Finalize(NULL));

	OK(p11->C_Initialize(NULL));
	CK_ULONG count;
	EXPECT(p11->C_GetSlotList(CK_FALSE, NULL, &count), CKR_DEVICE_ERROR);
	said("/.config/metaslot/metaslot.d/60-md5.toml: line 2: there is no setting \"colour\"");
	OK(p11->C_Finalize(NULL));

	/* Who names a file gets what stands in it. */
	snprintf(path, sizeof path, "%s/.config/metaslot/metaslot.toml", getenv("HOME"));
	CHECK(setenv("METASLOT_CONF", path, 1) == 0);
	OK(p11->C_Initialize(NULL));
	CHECK(slots() == 1);
	OK(p11->C_Finalize(NULL));
	return 0;
}
