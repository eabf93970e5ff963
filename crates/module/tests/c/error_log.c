// SPDX-License-Identifier: Apache-2.0
/* Calls that fail, for the error log. The argument is a file for standard error. */
#include "common.h"
#include <fcntl.h>

int main(int count, char **arguments)
{
	CK_UTF8CHAR label[32], wrong[] = "not-the-pin";
	CK_BYTE value[16] = {1};
	CK_SESSION_HANDLE session;
	CK_ATTRIBUTE unknown = {CKA_VALUE, NULL, 0};
	alarm(60);
	load();
	if (count > 1) dup2(open(arguments[1], O_WRONLY | O_CREAT, 0600), 2);
	OK(p11->C_Initialize(NULL));
	memset(label, ' ', sizeof label);
	if (p11->C_GetSlotList(CK_FALSE, NULL, &(CK_ULONG){0}) != CKR_OK) return 0;
	OK(p11->C_InitToken(0, so_pin, 8, label));
	session = open_session();
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, user_pin, 4));
	OK(p11->C_Logout(session));
	EXPECT(p11->C_Login(session, CKU_USER, wrong, sizeof wrong - 1), CKR_PIN_INCORRECT);
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	/* A question that many programs ask. */
	EXPECT(p11->C_GetAttributeValue(session, import_key(session, CKK_AES, value, 16), &unknown, 1),
	       CKR_ATTRIBUTE_SENSITIVE);
	EXPECT(p11->C_SignFinal(session, value, &(CK_ULONG){16}), CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_Finalize(NULL));
	return 0;
}
