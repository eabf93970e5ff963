/* SPDX-License-Identifier: Apache-2.0 */
/* The last of many tokens works as the first: its keys are found, used, changed and destroyed, and its handles are
 * nothing in the sessions of other tokens. */
#include "common.h"

static CK_SESSION_HANDLE log_in(CK_SLOT_ID slot)
{
	CK_UTF8CHAR label[33] = "one of many                     ";
	CK_SESSION_HANDLE session;
	OK(p11->C_InitToken(slot, so_pin, 8, label));
	OK(p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, user_pin, 4));
	OK(p11->C_Logout(session));
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	return session;
}

static CK_OBJECT_HANDLE make_key(CK_SESSION_HANDLE session, CK_BBOOL token)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG length = 32;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, &token, 1}};
	CK_OBJECT_HANDLE key;
	OK(p11->C_GenerateKey(session, &generate, template, 2, &key));
	return key;
}

static CK_RV encrypt(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key)
{
	CK_MECHANISM mechanism = {CKM_AES_ECB, NULL, 0};
	CK_BYTE block[16] = {0}, out[16];
	CK_ULONG length = 16;
	CK_RV rv = p11->C_EncryptInit(session, &mechanism, key);
	return rv == CKR_OK ? p11->C_Encrypt(session, block, 16, out, &length) : rv;
}

static void use(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key)
{
	CK_UTF8CHAR name[] = "renamed";
	CK_ATTRIBUTE label = {CKA_LABEL, name, 7};
	CK_OBJECT_HANDLE found;
	CK_ULONG count;
	OK(encrypt(session, key));
	OK(p11->C_SetAttributeValue(session, key, &label, 1));
	OK(p11->C_FindObjectsInit(session, &label, 1));
	OK(p11->C_FindObjects(session, &found, 1, &count));
	CHECK(count == 1 && found == key);
	OK(p11->C_FindObjectsFinal(session));
}

int main(int count, char **arguments)
{
	CK_SLOT_ID last = count > 1 ? (CK_SLOT_ID)atoi(arguments[1]) : 0;
	CK_SLOT_ID slots[] = {0, 63, 64, last};
	CK_SESSION_HANDLE sessions[4];
	CK_OBJECT_HANDLE keys[4];
	CK_ULONG present = 0;
	load();
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetSlotList(CK_TRUE, NULL, &present));
	CHECK(present == last + 1);
	for (int i = 0; i < 4; i++) {
		sessions[i] = log_in(slots[i]);
		use(sessions[i], make_key(sessions[i], CK_FALSE));
		OK(p11->C_CloseSession(sessions[i]));
		OK(p11->C_OpenSession(slots[i], CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &sessions[i]));
		OK(p11->C_Login(sessions[i], CKU_USER, user_pin, 4));
		keys[i] = make_key(sessions[i], CK_TRUE);
		use(sessions[i], keys[i]);
	}
	for (int i = 0; i < 4; i++)
		for (int other = 0; other < 4; other++)
			EXPECT(encrypt(sessions[i], keys[other]), other == i ? CKR_OK : CKR_KEY_HANDLE_INVALID);
	for (int i = 0; i < 4; i++) {
		OK(p11->C_DestroyObject(sessions[i], keys[i]));
		EXPECT(encrypt(sessions[i], keys[i]), CKR_KEY_HANDLE_INVALID);
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
