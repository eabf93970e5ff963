/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration that changes under a running process. The argument is the directory of the configuration. */
#include "common.h"
#include <sys/stat.h>

#define REFUSED CKR_ATTRIBUTE_VALUE_INVALID

static char path[5000], fresh[5000];

/* As an editor or the command does it: the whole file at once. */
static void configure(const char *name, const char *text)
{
	const char *directory = getenv("CONFIGURATION");
	snprintf(path, sizeof path, "%s/%s", directory, name);
	snprintf(fresh, sizeof fresh, "%s/%s.new", directory, name);
	FILE *file = fopen(fresh, "w");
	CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(rename(fresh, path) == 0);
}

static void settings(const char *above, const char *policy, const char *below)
{
	char text[5000];
	const char *directory = getenv("CONFIGURATION");
	snprintf(text, sizeof text, "audit = \"%s/audit.log\"\n%s\n[[token]]\npath = \"%s/token.db\"\n"
		"policy = \"%s\"\n%s\n", directory, above, directory, policy, below);
	configure("metaslot.toml", text);
}

static CK_SESSION_HANDLE session;

/* What the policy refuses: a short key. */
static CK_RV short_key(void)
{
	CK_MECHANISM mechanism = {CKM_GENERIC_SECRET_KEY_GEN, NULL, 0};
	CK_ULONG length = 4;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof length}};
	CK_OBJECT_HANDLE key;
	CK_RV rv = p11->C_GenerateKey(session, &mechanism, template, 1, &key);
	if (rv == CKR_OK) OK(p11->C_DestroyObject(session, key));
	return rv;
}

/* What a provider does, or may not. */
static CK_RV md5(void)
{
	CK_MECHANISM mechanism = {CKM_MD5, NULL, 0};
	CK_BYTE hash[16];
	CK_ULONG length = sizeof hash;
	CK_RV rv = p11->C_DigestInit(session, &mechanism);
	return rv == CKR_OK ? p11->C_Digest(session, (CK_BYTE *)"abc", 3, hash, &length) : rv;
}

/* A key that only the lanes know: it lies on sect233k1. */
static CK_RV key_of_the_lanes(void)
{
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_KEY_TYPE type = CKK_EC;
	CK_BBOOL no = CK_FALSE;
	CK_BYTE curve[] = {6, 5, 0x2b, 0x81, 4, 0, 0x1a}, value[29] = {1};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}, {CKA_PRIVATE, &no, sizeof no},
		{CKA_EC_PARAMS, curve, sizeof curve}, {CKA_VALUE, value, sizeof value}};
	CK_OBJECT_HANDLE key;
	CK_RV rv = p11->C_CreateObject(session, template, 5, &key);
	if (rv == CKR_OK) OK(p11->C_DestroyObject(session, key));
	return rv;
}

/* Calls until it is answered so. */
static void becomes(CK_RV (*call)(void), CK_RV wanted)
{
	time_t start = time(NULL);
	while (call() != wanted) {
		if (time(NULL) - start > 60) FAIL("0x%lx is never answered", wanted);
		pause_ms(1);
	}
}

/* Sessions that are opened and closed are calls too. */
static CK_RV short_key_in_new_session(void)
{
	OK(p11->C_CloseSession(session));
	pause_ms(10);
	session = open_session();
	return short_key();
}

static void follows(void)
{
	settings("", "default", "");
	OK(p11->C_Initialize(NULL));
	session = open_session();
	EXPECT(short_key(), REFUSED);
	OK(md5());

	settings("", "legacy", "");
	becomes(short_key, CKR_OK);
	settings("", "strict", "");
	becomes(short_key, REFUSED);
	settings("", "legacy", "");
	becomes(short_key_in_new_session, CKR_OK);

	/* What a provider may not do. */
	settings("", "legacy", "[provider.awslc]\ndisable = [\"CKM_MD5\"]\n[provider.lanes]\ndisable = [\"CKM_MD5\"]");
	becomes(md5, CKR_MECHANISM_INVALID);
	CK_MECHANISM_INFO info;
	EXPECT(p11->C_GetMechanismInfo(0, CKM_MD5, &info), CKR_MECHANISM_INVALID);
	settings("", "legacy", "");
	becomes(md5, CKR_OK);
	OK(p11->C_GetMechanismInfo(0, CKM_MD5, &info));

	/* What is left out does nothing at all. */
	OK(key_of_the_lanes());
	settings("lanes = false", "legacy", "");
	becomes(key_of_the_lanes, CKR_CURVE_NOT_SUPPORTED);
	settings("", "legacy", "");
	becomes(key_of_the_lanes, CKR_OK);
	OK(p11->C_Finalize(NULL));
}

/* What is wrong, gone or odd changes nothing; what comes after it does. */
static void keeps(void)
{
	settings("", "legacy", "[provider.awslc]\ndisable = [\"CKM_MD5\"]\n[provider.lanes]\ndisable = [\"CKM_MD5\"]");
	OK(p11->C_Initialize(NULL));
	session = open_session();
	OK(short_key());
	for (int round = 0; round < 4; round++) {
		switch (round) {
		case 0: settings("colour = 3", "default", ""); break;
		case 1: configure("metaslot.toml", "[[token]]\npath = \"/elsewhere/token.db\"\n"
			"[provider.awslc]\ndisable = [\"CKM_MD5\"]\n[provider.lanes]\ndisable = [\"CKM_MD5\"]\n"); break;
		case 2: CHECK(unlink(path) == 0); break;
		case 3: CHECK(mkfifo(path, 0600) == 0); break;
		}
		for (int call = 0; call < 60; call++) {
			OK(short_key());
			EXPECT(md5(), CKR_MECHANISM_INVALID);
			pause_ms(10);
		}
	}
	CHECK(unlink(path) == 0);
	/* Costs that are odd keep nothing from being taken over. */
	char costs[5000];
	snprintf(costs, sizeof costs, "%s/costs.tsv", getenv("CONFIGURATION"));
	CHECK(mkfifo(costs, 0600) == 0);
	settings("", "default", "");
	becomes(short_key, REFUSED);
	CHECK(unlink(costs) == 0);
	OK(p11->C_Finalize(NULL));
}

/* A file written in place, in two halves, of which the first one is wrong. */
static void halves(void)
{
	settings("", "default", "");
	OK(p11->C_Initialize(NULL));
	session = open_session();
	for (int round = 0; round < 3; round++) {
		int file = open(path, O_WRONLY | O_TRUNC);
		CHECK(file >= 0);
		CHECK(dprintf(file, "[[token]]\npath = \"%s/tok", getenv("CONFIGURATION")) > 0);
		pause_ms(round * 300);
		CHECK(short_key() == (round % 2 ? CKR_OK : REFUSED));
		CHECK(dprintf(file, "en.db\"\npolicy = \"%s\"\n", round % 2 ? "default" : "legacy") > 0);
		CHECK(close(file) == 0);
		becomes(short_key, round % 2 ? REFUSED : CKR_OK);
	}
	OK(p11->C_Finalize(NULL));
}

static atomic_int at_work;

static void *digests(void *unused)
{
	(void)unused;
	CK_SESSION_HANDLE own = open_session();
	CK_BYTE data[] = "abc", hash[32], first[32];
	sha256(own, data, 3, first);
	while (atomic_load(&at_work)) {
		sha256(own, data, 3, hash);
		CHECK(memcmp(hash, first, sizeof hash) == 0);
	}
	return NULL;
}

/* Operations of other threads and of a forked child go on meanwhile. */
static void at_work_meanwhile(void)
{
	settings("", "default", "");
	OK(p11->C_Initialize(NULL));
	session = open_session();
	pthread_t threads[3];
	atomic_store(&at_work, 1);
	for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, digests, NULL) == 0);
	for (int round = 0; round < 6; round++) {
		configure("costs.tsv", round % 2 ? "# metaslot costs 1\n"
			"lanes CKM_SHA256 digest - 900 9 900\nawslc CKM_SHA256 digest - 100 1 100\n" : "nonsense");
		settings(round % 2 ? "lanes = false" : "", round % 2 ? "default" : "legacy", "");
		becomes(short_key, round % 2 ? REFUSED : CKR_OK);
		pid_t child = fork();
		if (child == 0) {
			OK(p11->C_Initialize(NULL));
			session = open_session();
			CHECK(short_key() == (round % 2 ? REFUSED : CKR_OK));
			settings("", round % 2 ? "legacy" : "default", "");
			becomes(short_key, round % 2 ? CKR_OK : REFUSED);
			_exit(0);
		}
		CHECK(ended(child) == 0);
	}
	atomic_store(&at_work, 0);
	for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
	OK(p11->C_Finalize(NULL));
}

int main(void)
{
	load();
	follows();
	keeps();
	halves();
	at_work_meanwhile();
	puts("ok");
	return 0;
}
