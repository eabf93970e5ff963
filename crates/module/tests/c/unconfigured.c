// SPDX-License-Identifier: Apache-2.0
/* Uses everything that needs no token. The harness checks that no file was made and nothing said.
 * With an argument: a configuration that cannot be used, and what must be said about it. */
#include "common.h"

static void wrong(const char *expected)
{
	CK_INTERFACE *interface;
	METASLOT_FUNCTION_LIST *metaslot;
	CK_UTF8CHAR text[512];
	CK_ULONG length = sizeof text, count = 0;
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	for (int i = 0; i < 2; i++) {
		EXPECT(p11->C_GetSlotList(CK_TRUE, NULL, &count), CKR_DEVICE_ERROR);
		length = sizeof text - 1;
		OK(metaslot->LastError(text, &length));
		text[length] = 0;
		if (strcmp((char *)text, expected) != 0) FAIL("said \"%s\"", (char *)text);
	}
	OK(p11->C_Finalize(NULL));
}

int main(int count, char **arguments)
{
	CK_BYTE value[16] = {1}, random[64];
	CK_SESSION_HANDLE session;
	CK_OBJECT_HANDLE found;
	CK_ULONG number = 0;
	CK_TOKEN_INFO info;
	alarm(60);
	load();
	if (count > 1) {
		wrong(arguments[1]);
		return 0;
	}
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetTokenInfo(0, &info));
	OK(p11->C_GetMechanismList(0, NULL, &number));
	CHECK(number > 50);
	session = open_session();
	check_works(session);
	OK(p11->C_GenerateRandom(session, random, sizeof random));
	import_key(session, CKK_AES, value, sizeof value);
	OK(p11->C_FindObjectsInit(session, NULL, 0));
	OK(p11->C_FindObjects(session, &found, 1, &number));
	CHECK(number == 1);
	OK(p11->C_FindObjectsFinal(session));
	CHECK(p11->C_Login(session, CKU_USER, user_pin, 4) != CKR_OK);
	OK(p11->C_CloseAllSessions(0));
	OK(p11->C_Finalize(NULL));
	return 0;
}
