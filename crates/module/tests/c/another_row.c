/* SPDX-License-Identifier: Apache-2.0 */
/* An older copy of the token's files is put back under a process that has a key, and another process makes one in the same row: the
 * first one uses that key then, and changes it, and not its own. Argument: the file. */
#include "one_time.h"

static CK_SESSION_HANDLE session;

static CK_OBJECT_HANDLE make(const char *label, CK_BBOOL *extractable)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG length = 32;
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE secret[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, (void *)label, 1}, {CKA_VALUE_LEN, &length, sizeof(length)},
				 {CKA_ENCRYPT, &yes, 1}, {CKA_EXTRACTABLE, extractable, 1}};
	OK(p11->C_GenerateKey(session, &generate, secret, 5, &key));
	return key;
}

/* What is zero, encrypted: it tells keys apart. */
static void encrypt(CK_OBJECT_HANDLE key, CK_BYTE out[16])
{
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0};
	CK_BYTE text[16] = {0};
	CK_ULONG length = 16;
	OK(p11->C_EncryptInit(session, &ecb, key));
	OK(p11->C_Encrypt(session, text, 16, out, &length));
}

static void begin_messages(CK_SESSION_HANDLE with, CK_OBJECT_HANDLE key)
{
	CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
	OK(p11->C_MessageEncryptInit(with, &mechanism, key));
}

/* Takes numbers from the row. */
static CK_RV seal(CK_SESSION_HANDLE with)
{
	CK_BYTE iv[12] = {0}, tag[16], sealed[8];
	CK_GCM_MESSAGE_PARAMS gcm = {iv, sizeof(iv), 32, CKG_GENERATE_COUNTER, tag, 128};
	CK_ULONG length = sizeof(sealed);
	return p11->C_EncryptMessage(with, &gcm, sizeof(gcm), NULL, 0, sealed, sizeof(sealed), sealed, &length);
}

static void is_the_other(const CK_BYTE expected[16])
{
	CK_BYTE found[16];
	CK_BBOOL extractable = 7;
	CK_OBJECT_HANDLE key = find_labelled(session, CKO_SECRET_KEY, "2");
	CK_ATTRIBUTE query = {CKA_EXTRACTABLE, &extractable, 1};
	OK(p11->C_GetAttributeValue(session, key, &query, 1));
	CHECK(extractable == CK_FALSE);
	encrypt(key, found);
	CHECK(memcmp(found, expected, 16) == 0);
}

static void shell(const char *command, const char *path)
{
	char line[2048];
	snprintf(line, sizeof(line), command, path, path, path, path);
	CHECK(system(line) == 0);
}

/* Makes a key, and another time looks whether it is as it was. */
static void another(int from, int to)
{
	CK_BYTE text[16];
	OK(p11->C_Initialize(NULL));
	session = user_session();
	encrypt(make("2", &no), text);
	CHECK(write(to, text, 16) == 16 && read(from, text, 1) == 1);
	encrypt(find_labelled(session, CKO_SECRET_KEY, "2"), text);
	CHECK(write(to, text, 16) == 16);
	CHECK(read(from, text, 16) == 16);
	is_the_other(text);
	OK(p11->C_Finalize(NULL));
	_exit(0);
}

int main(int argc, char **argv)
{
	CK_BYTE first[16], second[16];
	int there[2], back[2];
	CHECK(argc == 2 && pipe(there) == 0 && pipe(back) == 0);
	session = begin_as_user();
	OK(p11->C_Finalize(NULL));
	shell("mkdir old && cp %s* old", argv[1]);
	OK(p11->C_Initialize(NULL));
	session = user_session();
	CK_OBJECT_HANDLE own = make("1", &yes);
	CK_SESSION_HANDLE busy = open_session();
	encrypt(own, first);
	begin_messages(busy, own);
	/* Written over what is there, as `cp` does it. */
	shell("cp old/* $(dirname %s)", argv[1]);
	pid_t child = fork();
	if (child == 0) {
		close(there[1]);
		another(there[0], back[1]);
	}
	close(back[1]);
	CHECK(read(back[0], second, 16) == 16);
	CHECK(memcmp(first, second, 16) != 0);
	is_the_other(second);
	EXPECT(seal(busy), CKR_KEY_HANDLE_INVALID);
	begin_messages(session, find_labelled(session, CKO_SECRET_KEY, "2"));
	OK(seal(session));
	CHECK(write(there[1], "", 1) == 1 && read(back[0], first, 16) == 16 && memcmp(first, second, 16) == 0);
	CHECK(write(there[1], second, 16) == 16 && ended(child) == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
