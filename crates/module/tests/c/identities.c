/* SPDX-License-Identifier: Apache-2.0 */
/* Identities: C_LoginUser with a name, C_SetPIN in its session, and one that is revoked while another process is logged in as it. */
#include "common.h"

static METASLOT_FUNCTION_LIST *metaslot;
static CK_UTF8CHAR web[] = "web", mail[] = "mail", first_pin[] = "first pin", second_pin[] = "second pin";
static CK_UTF8CHAR label[] = "kept";

/* Of the officer. */
static CK_RV change(CK_ULONG what, CK_UTF8CHAR *name, CK_UTF8CHAR *pin)
{
	CK_ULONG length = pin == NULL ? 0 : strlen((char *)pin);
	return metaslot->Identities(0, so_pin, 8, what, name, strlen((char *)name), pin, length, NULL, NULL);
}

static CK_RV login_as(CK_SESSION_HANDLE session, CK_UTF8CHAR *name, CK_UTF8CHAR *pin)
{
	return p11->C_LoginUser(session, CKU_USER, pin, strlen((char *)pin), name, strlen((char *)name));
}

static void begin(void)
{
	CK_INTERFACE *interface;
	load();
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
}

static CK_STATE state(CK_SESSION_HANDLE session)
{
	CK_SESSION_INFO info;
	OK(p11->C_GetSessionInfo(session, &info));
	return info.state;
}

static CK_ULONG find(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *key)
{
	CK_ATTRIBUTE query = {CKA_LABEL, label, sizeof label - 1};
	CK_ULONG found = 0;
	CK_RV rv = p11->C_FindObjectsInit(session, &query, 1);
	if (rv == CKR_OK) {
		rv = p11->C_FindObjects(session, key, 1, &found);
		OK(p11->C_FindObjectsFinal(session));
	}
	CHECK(rv == CKR_OK || rv == CKR_USER_NOT_LOGGED_IN);
	return found;
}

static void tell(int to)
{
	CHECK(write(to, "", 1) == 1);
}

static void wait_for(int from)
{
	char byte;
	CHECK(read(from, &byte, 1) == 1);
}

/* Another process: is logged in while the identity is revoked. */
static void other(int from, int to)
{
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0};
	CK_BYTE block[16] = {0}, out[16];
	CK_ULONG length = 16;
	CK_OBJECT_HANDLE key;
	wait_for(from);
	begin();
	CK_SESSION_HANDLE session = open_session();
	CK_SESSION_HANDLE untouched = open_session();
	OK(login_as(session, web, second_pin));
	CHECK(state(session) == CKS_RW_USER_FUNCTIONS && find(session, &key) == 1);
	OK(p11->C_EncryptInit(session, &ecb, key));
	OK(p11->C_Encrypt(session, block, 16, out, &length));
	OK(p11->C_EncryptInit(untouched, &ecb, key));
	tell(to);
	wait_for(from);
	EXPECT(p11->C_Encrypt(untouched, block, 16, out, &length), CKR_OPERATION_NOT_INITIALIZED);
	CHECK(p11->C_EncryptInit(session, &ecb, key) != CKR_OK);
	CHECK(find(session, &key) == 0);
	CHECK(state(session) == CKS_RW_PUBLIC_SESSION);
	/* No other PIN than its own, which it has none any more; without a login it is the user's. */
	EXPECT(p11->C_SetPIN(session, user_pin, 4, second_pin, 10), CKR_PIN_INCORRECT);
	EXPECT(p11->C_Logout(session), CKR_USER_NOT_LOGGED_IN);
	OK(p11->C_SetPIN(session, user_pin, 4, user_pin, 4));
	EXPECT(login_as(session, web, second_pin), CKR_PIN_INCORRECT);
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	CHECK(find(session, &key) == 1);
	OK(p11->C_Finalize(NULL));
	_exit(0);
}

static void names(CK_SESSION_HANDLE session)
{
	CK_UTF8CHAR unseen[] = "a\nb", longest[65];
	CK_TOKEN_INFO info;
	memset(longest, 'n', sizeof longest);
	EXPECT(p11->C_LoginUser(session, CKU_SO, so_pin, 8, web, 3), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_LoginUser(session, CKU_CONTEXT_SPECIFIC, first_pin, 9, web, 3), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_LoginUser(session, 7, first_pin, 9, web, 3), CKR_USER_TYPE_INVALID);
	EXPECT(p11->C_LoginUser(session, CKU_USER, NULL, 0, web, 3), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_LoginUser(session, CKU_USER, first_pin, 9, unseen, 3), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_LoginUser(session, CKU_USER, first_pin, 9, longest, 65), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_LoginUser(session, CKU_USER, first_pin, 9, longest, 64), CKR_PIN_INCORRECT);
	EXPECT(login_as(session, web, second_pin), CKR_PIN_INCORRECT);
	EXPECT(change(METASLOT_IDENTITY_ADD, mail, (CK_UTF8CHAR *)"123"), CKR_PIN_LEN_RANGE);
	EXPECT(change(METASLOT_IDENTITY_ADD, web, first_pin), CKR_ARGUMENTS_BAD);
	EXPECT(change(METASLOT_IDENTITY_REVOKE, mail, NULL), CKR_ARGUMENTS_BAD);
	EXPECT(change(77, web, NULL), CKR_ARGUMENTS_BAD);
	/* The flags are about the user without a name. */
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK((info.flags & (CKF_USER_PIN_COUNT_LOW | CKF_USER_PIN_LOCKED)) == 0);
}

static void list(void)
{
	METASLOT_IDENTITY all[2];
	CK_ULONG count = 2;
	OK(metaslot->Identities(0, so_pin, 8, METASLOT_IDENTITY_LIST, NULL, 0, NULL, 0, all, &count));
	CHECK(count == 1 && memcmp(all[0].name, "web ", 4) == 0 && all[0].name[63] == ' ');
	CHECK(all[0].pin.ulFailures == 1 && all[0].pin.ulLeft == 9);
}

static void make_key(CK_SESSION_HANDLE session)
{
	CK_MECHANISM make = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG length = 32;
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE template[] = {
		{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, &yes, 1}, {CKA_PRIVATE, &yes, 1},
		{CKA_ENCRYPT, &yes, 1}, {CKA_LABEL, label, sizeof label - 1},
	};
	OK(p11->C_GenerateKey(session, &make, template, 5, &key));
}

int main(void)
{
	int there[2], back[2];
	CK_OBJECT_HANDLE key;
	CHECK(pipe(there) == 0 && pipe(back) == 0);
	pid_t child = fork();
	if (child == 0) other(there[0], back[1]);
	begin();
	make_token();
	OK(change(METASLOT_IDENTITY_ADD, web, first_pin));
	CK_SESSION_HANDLE session = open_session();
	names(session);
	list();
	OK(login_as(session, web, first_pin));
	EXPECT(login_as(session, web, first_pin), CKR_USER_ALREADY_LOGGED_IN);
	EXPECT(login_as(session, mail, first_pin), CKR_USER_ANOTHER_ALREADY_LOGGED_IN);
	EXPECT(p11->C_Login(session, CKU_USER, user_pin, 4), CKR_USER_ANOTHER_ALREADY_LOGGED_IN);
	make_key(session);
	OK(p11->C_SetPIN(session, first_pin, 9, second_pin, 10));
	CHECK(find(session, &key) == 1);
	OK(p11->C_Logout(session));
	EXPECT(login_as(session, web, first_pin), CKR_PIN_INCORRECT);
	/* The user's PIN is what it was. */
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	CHECK(find(session, &key) == 1);
	tell(there[1]);
	wait_for(back[0]);
	OK(change(METASLOT_IDENTITY_REVOKE, web, NULL));
	CHECK(state(session) == CKS_RW_USER_FUNCTIONS && find(session, &key) == 1);
	tell(there[1]);
	CHECK(ended(child) == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
