/* SPDX-License-Identifier: Apache-2.0 */
/* A token is restored beside the one that was copied, and so again. What a key counts in its row does not begin again there, until
 * somebody says how many one-time keys are left. Arguments: the file of the copy, and the kind. */
#include "one_time.h"

enum { TREE = 5, CHAIN = 4 };

static METASLOT_FUNCTION_LIST *metaslot;
static CK_SESSION_HANDLE session;
static CK_BYTE iv[12], tag[16];
static CK_ULONG all;

static void begin(CK_SLOT_ID slot)
{
	OK(p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
}

static void make(const char *label)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG tree = TREE, chain = CHAIN, length = 32;
	CK_ATTRIBUTE secret[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, (void *)label, strlen(label)},
				 {CKA_VALUE_LEN, &length, sizeof(length)}, {CKA_ENCRYPT, &yes, 1}};
	CK_OBJECT_HANDLE keys[2];
	OK(make_one_time(session, label, 1, &tree, &chain, keys));
	OK(p11->C_GenerateKey(session, &generate, secret, 4, keys));
}

static CK_ULONG left(const char *label)
{
	CK_ULONG number;
	CK_ATTRIBUTE query = {CKA_HSS_KEYS_REMAINING, &number, sizeof(number)};
	OK(p11->C_GetAttributeValue(session, find_labelled(session, CKO_PRIVATE_KEY, label), &query, 1));
	return number;
}

static CK_RV say(const char *label, CK_ULONG number)
{
	CK_ATTRIBUTE change = {CKA_HSS_KEYS_REMAINING, &number, sizeof(number)};
	return p11->C_SetAttributeValue(session, find_labelled(session, CKO_PRIVATE_KEY, label), &change, 1);
}

/* Which one-time key it was, where one signed. */
static CK_RV sign(const char *label, CK_ULONG *number)
{
	CK_BYTE signature[8000];
	CK_ULONG length = sizeof(signature);
	OK(p11->C_SignInit(session, &one_time, find_labelled(session, CKO_PRIVATE_KEY, label)));
	CK_RV rv = p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length);
	if (rv == CKR_OK) *number = number_in(signature, 0);
	return rv;
}

static CK_RV seal(const char *label, CK_ULONG generator)
{
	CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
	CK_GCM_MESSAGE_PARAMS gcm = {iv, sizeof(iv), generator == CKG_GENERATE_COUNTER ? 32 : 0, generator, tag, 128};
	CK_BYTE text[8] = {0}, sealed[8];
	CK_ULONG length = sizeof(sealed);
	memset(iv, 0, sizeof(iv));
	OK(p11->C_MessageEncryptInit(session, &mechanism, find_labelled(session, CKO_SECRET_KEY, label)));
	CK_RV rv = p11->C_EncryptMessage(session, &gcm, sizeof(gcm), NULL, 0, text, sizeof(text), sealed, &length);
	OK(p11->C_MessageEncryptFinal(session));
	return rv;
}

static void copy(CK_SLOT_ID slot, CK_BBOOL restore, CK_ULONG role, const char *path)
{
	METASLOT_EXAMINED examined;
	CK_UTF8CHAR *pin = role == CKU_SO ? so_pin : user_pin;
	OK(metaslot->CopyToken(slot, role, pin, strlen((char *)pin), (CK_UTF8CHAR *)path, strlen(path), restore, NULL, NULL,
			       &examined));
	CHECK(examined.ulFindings == 0);
}

static void works(const char *label, CK_ULONG expected)
{
	CK_ULONG number;
	OK(sign(label, &number));
	CHECK(number == expected && left(label) == all - 1 - expected);
}

/* What the token had when it was copied. */
static void refused(const char *label, CK_ULONG is_left)
{
	CK_ULONG number;
	EXPECT(sign(label, &number), CKR_KEY_FUNCTION_NOT_PERMITTED);
	CHECK(left(label) == is_left);
	EXPECT(seal(label, CKG_GENERATE_COUNTER), CKR_MECHANISM_PARAM_INVALID);
	OK(seal(label, CKG_GENERATE_RANDOM));
}

int main(int argc, char **argv)
{
	CK_INTERFACE *interface;
	CK_ULONG number;
	CHECK(argc == 3);
	choose(argv[2]);
	all = one_time.mechanism == CKM_HSS ? 32 : one_time.mechanism == CKM_XMSS ? 1 << 10 : 1 << 20;
	load();
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	make_token();
	begin(0);
	make("first");
	for (CK_ULONG at = 0; at < 3; at++) works("first", at);
	copy(0, CK_FALSE, CKU_USER, argv[1]);
	/* The copy changes nothing for the token. */
	works("first", 3);
	works("first", 4);
	OK(seal("first", CKG_GENERATE_COUNTER));
	copy(1, CK_TRUE, CKU_USER, argv[1]);
	begin(1);
	refused("first", all - 3);
	EXPECT(say("first", all - 2), CKR_ATTRIBUTE_READ_ONLY);
	refused("first", all - 3);
	OK(say("first", all - 5));
	works("first", 5);
	/* What is made there counts there, until it is restored again, by the officer now. */
	make("second");
	works("second", 0);
	OK(seal("second", CKG_GENERATE_COUNTER));
	unlink(argv[1]);
	copy(1, CK_FALSE, CKU_SO, argv[1]);
	copy(2, CK_TRUE, CKU_SO, argv[1]);
	works("first", 6);
	begin(2);
	refused("first", all - 6);
	refused("second", all - 1);
	OK(say("second", 0));
	EXPECT(sign("first", &number), CKR_KEY_FUNCTION_NOT_PERMITTED);
	OK(say("first", all - 6));
	works("first", 6);
	/* A file that is put back knows nothing of it; the process that has signed since does. */
	OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	CHECK(system("cp -a \"$HOME/a\" \"$HOME/old\"") == 0);
	works("first", 5);
	works("first", 6);
	CHECK(system("mv \"$HOME/a\" \"$HOME/newer\" && mv \"$HOME/old\" \"$HOME/a\"") == 0);
	for (CK_ULONG at = 5; at < 7; at++) {
		EXPECT(sign("first", &number), CKR_KEY_FUNCTION_NOT_PERMITTED);
		CHECK(left("first") == all - 1 - at);
	}
	works("first", 7);
	OK(p11->C_Finalize(NULL));
	return 0;
}
