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

static void make(void)
{
	OK(p11->C_InitToken(0, so_pin, 8, label));
	session = open_session();
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, pin, 8));
	OK(p11->C_Logout(session));
	OK(p11->C_Login(session, CKU_USER, pin, 8));
	OK(make_key());
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
	EXPECT(rv, read_only ? CKR_TOKEN_WRITE_PROTECTED : CKR_DEVICE_MEMORY);
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
