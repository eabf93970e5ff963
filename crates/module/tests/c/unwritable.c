/* SPDX-License-Identifier: Apache-2.0 */
/* A token whose store nobody can write. With `make` there is one, with a key; with `read-only` and `full` it is used where its file system is
 * so. */
#include "common.h"

static CK_UTF8CHAR label[33] = "unwritable                      ", pin[] = "23456789", wrong[] = "99999999";
static CK_SESSION_HANDLE session;

static CK_OBJECT_CLASS class = CKO_SECRET_KEY;

static CK_RV make_key(void)
{
	CK_MECHANISM mechanism = {CKM_GENERIC_SECRET_KEY_GEN, NULL, 0};
	CK_ULONG length = 32;
	CK_ATTRIBUTE template[] = {{CKA_TOKEN, &yes, sizeof yes}, {CKA_PRIVATE, &yes, sizeof yes}, {CKA_SIGN, &yes, sizeof yes},
		{CKA_VALUE_LEN, &length, sizeof length}};
	CK_OBJECT_HANDLE key;
	return p11->C_GenerateKey(session, &mechanism, template, 4, &key);
}

enum { ONE_TIME_KEYS = 32 };

/* A key of one-time keys: what is taken is written before it signs. */
static void make_hss(void)
{
	CK_MECHANISM mechanism = {CKM_HSS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG tree = 5, chain = 4;
	CK_ATTRIBUTE public[] = {{CKA_TOKEN, &no, sizeof no}};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &yes, sizeof yes}, {CKA_HSS_LMS_TYPES, &tree, sizeof tree},
				  {CKA_HSS_LMOTS_TYPES, &chain, sizeof chain}};
	CK_OBJECT_HANDLE keys[2];
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, private, 3, keys, keys + 1));
}

/* None signs where that cannot be written, none signs twice, and what could not be written is not lost. */
static void sign_once(CK_RV refused)
{
	CK_OBJECT_CLASS private = CKO_PRIVATE_KEY;
	CK_ULONG left, count, signatures = 0, refusals = 0, uses[ONE_TIME_KEYS] = {0};
	CK_ATTRIBUTE query = {CKA_CLASS, &private, sizeof private}, remaining = {CKA_HSS_KEYS_REMAINING, &left, sizeof left};
	CK_MECHANISM mechanism = {CKM_HSS, NULL, 0};
	CK_OBJECT_HANDLE key;
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, &key, 1, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == 1);
	for (int i = 0; i < ONE_TIME_KEYS; i++) {
		CK_BYTE signature[4000] = {0};
		CK_ULONG length = sizeof signature;
		OK(p11->C_SignInit(session, &mechanism, key));
		CK_RV rv = p11->C_Sign(session, (CK_BYTE *)"abc", 3, signature, &length);
		if (rv == CKR_OK) {
			CHECK(signature[7] < ONE_TIME_KEYS && uses[signature[7]]++ == 0);
			signatures++;
		} else {
			EXPECT(rv, refused);
			for (CK_ULONG at = 0; at < sizeof signature; at++) CHECK(signature[at] == 0);
			refusals++;
		}
	}
	OK(p11->C_GetAttributeValue(session, key, &remaining, 1));
	CHECK(left == ONE_TIME_KEYS - signatures);
	/* On a full disk the log has room for some. */
	CHECK(refusals > 0 && (signatures == 0 || refused == CKR_DEVICE_MEMORY));
}

/* Of a pair whose private key cannot be written, no public key stays in memory. */
static void make_pairs(CK_RV refused)
{
	CK_MECHANISM mechanism = {CKM_EC_EDWARDS_KEY_PAIR_GEN, NULL, 0};
	CK_BYTE curve[] = {0x06, 0x03, 0x2b, 0x65, 0x70};
	CK_OBJECT_CLASS public_key = CKO_PUBLIC_KEY;
	CK_ATTRIBUTE public[] = {{CKA_TOKEN, &no, sizeof no}, {CKA_EC_PARAMS, curve, sizeof curve}};
	CK_ATTRIBUTE private = {CKA_TOKEN, &yes, sizeof yes}, query = {CKA_CLASS, &public_key, sizeof public_key};
	CK_OBJECT_HANDLE keys[2], found[100];
	CK_ULONG made = 0, count;
	CK_RV rv;
	while ((rv = p11->C_GenerateKeyPair(session, &mechanism, public, 2, &private, 1, keys, keys + 1)) == CKR_OK) CHECK(++made < 100);
	EXPECT(rv, refused);
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, found, 100, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == made);
}

static void make(void)
{
	OK(p11->C_InitToken(0, so_pin, 8, label));
	session = open_session();
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, pin, 8));
	OK(p11->C_Logout(session));
	OK(p11->C_Login(session, CKU_USER, pin, 8));
	OK(make_key());
	make_hss();
}

static void use(int read_only)
{
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_TOKEN, &yes, sizeof yes}};
	CK_MECHANISM mechanism = {CKM_SHA256_HMAC, NULL, 0};
	CK_TOKEN_INFO info;
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK(!(info.flags & CKF_WRITE_PROTECTED) == !read_only);
	session = open_session();
	/* More often than a PIN may be wrong. */
	for (int i = 0; i < 12; i++) {
		CK_OBJECT_HANDLE key;
		CK_ULONG count, length = 32;
		CK_BYTE mac[32];
		OK(p11->C_Login(session, CKU_USER, pin, 8));
		OK(p11->C_FindObjectsInit(session, template, 2));
		OK(p11->C_FindObjects(session, &key, 1, &count));
		OK(p11->C_FindObjectsFinal(session));
		CHECK(count == 1);
		OK(p11->C_SignInit(session, &mechanism, key));
		OK(p11->C_Sign(session, (CK_BYTE *)"abc", 3, mac, &length));
		OK(p11->C_Logout(session));
	}
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK((info.flags & CKF_USER_PIN_COUNT_LOW) == 0);
	OK(p11->C_Login(session, CKU_USER, pin, 8));
	/* On a full disk there may be space for one or two. */
	CK_RV rv = CKR_OK;
	for (int i = 0; i < 1000 && rv == CKR_OK; i++) rv = make_key();
	CK_RV refused = read_only ? CKR_TOKEN_WRITE_PROTECTED : CKR_DEVICE_MEMORY;
	EXPECT(rv, refused);
	make_pairs(refused);
	sign_once(refused);
	OK(p11->C_Logout(session));
	/* Each pause is twice as long as the one before: on a slow machine more attempts are taken. */
	rv = CKR_PIN_INCORRECT;
	for (int i = 0; i < 10 && rv == CKR_PIN_INCORRECT; i++) {
		rv = p11->C_Login(session, CKU_USER, wrong, 8);
		if (i < 3) EXPECT(rv, CKR_PIN_INCORRECT);
	}
	EXPECT(rv, CKR_PIN_LOCKED);
	/* A child has no tries of its own. */
	pid_t child = fork();
	if (child == 0) {
		OK(p11->C_Initialize(NULL));
		session = open_session();
		rv = CKR_PIN_INCORRECT;
		for (int i = 0; i < 7 && rv == CKR_PIN_INCORRECT; i++)
			rv = p11->C_Login(session, CKU_USER, wrong, 8);
		EXPECT(rv, CKR_PIN_LOCKED);
		_exit(0);
	}
	CHECK(ended(child) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	load();
	OK(p11->C_Initialize(NULL));
	if (strcmp(argv[1], "make") == 0) make();
	else use(strcmp(argv[1], "read-only") == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
