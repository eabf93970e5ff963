// SPDX-License-Identifier: Apache-2.0
/* A library whose destructor still uses the module: it runs after the exit handlers. */
#include <metaslot/pkcs11.h>
#include <unistd.h>

static CK_FUNCTION_LIST_3_2 *p11;
static CK_SESSION_HANDLE session;

void use_in_destructor(CK_FUNCTION_LIST_3_2 *functions, CK_SESSION_HANDLE handle)
{
	p11 = functions;
	session = handle;
}

__attribute__((destructor)) static void last(void)
{
	CK_MECHANISM mechanism = {CKM_SHA256, NULL_PTR, 0};
	CK_BYTE data[3] = {0}, out[32];
	CK_ULONG length = sizeof out;
	if (p11 == NULL_PTR) return;
	if (p11->C_DigestInit(session, &mechanism) != CKR_OK) _exit(3);
	if (p11->C_Digest(session, data, 3, out, &length) != CKR_OK) _exit(4);
	if (p11->C_GenerateRandom(session, out, sizeof out) != CKR_OK) _exit(5);
	if (p11->C_CloseAllSessions(0) != CKR_OK) _exit(6);
	if (p11->C_Finalize(NULL_PTR) != CKR_OK) _exit(7);
}
