/* SPDX-License-Identifier: Apache-2.0 */
/* Finds an AES key by its label and encrypts with it: slot 0, login, find, C_Encrypt.
 *
 *	metaslot key generate --label app --type aes:256
 *	cc -o aes_cbc aes_cbc.c -ldl
 *	./aes_cbc /usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so app pin-file
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <metaslot/pkcs11.h>
static CK_FUNCTION_LIST *p11;

static void check(CK_RV rv, const char *what)
{
	if (rv == CKR_OK)
		return;
	fprintf(stderr, "%s: 0x%lx\n", what, rv);
	exit(1);
}

static void load(const char *module)
{
	void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
	void *list = library == NULL ? NULL : dlsym(library, "C_GetFunctionList");
	check(list == NULL ? CKR_FUNCTION_FAILED : ((CK_C_GetFunctionList)list)(&p11), module);
	check(p11->C_Initialize(NULL), "C_Initialize");
}

static CK_SESSION_HANDLE log_in(const char *pin_file)
{
	CK_SESSION_HANDLE session;
	CK_UTF8CHAR pin[256] = "";
	FILE *file = fopen(pin_file, "r");
	check(file != NULL && fgets((char *)pin, sizeof(pin), file) ? CKR_OK : CKR_PIN_INVALID, pin_file);
	fclose(file);
	/* Without its end mark: a NUL would be a part of the PIN. */
	CK_ULONG length = strcspn((char *)pin, "\r\n");
	check(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), "C_OpenSession");
	check(p11->C_Login(session, CKU_USER, pin, length), "C_Login");
	return session;
}

static CK_OBJECT_HANDLE find(CK_SESSION_HANDLE session, char *label)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ATTRIBUTE template[] = { { CKA_CLASS, &class, sizeof(class) }, { CKA_LABEL, label, strlen(label) } };
	CK_OBJECT_HANDLE key;
	CK_ULONG count = 0;
	check(p11->C_FindObjectsInit(session, template, 2), "C_FindObjectsInit");
	check(p11->C_FindObjects(session, &key, 1, &count), "C_FindObjects");
	check(p11->C_FindObjectsFinal(session), "C_FindObjectsFinal");
	check(count == 1 ? CKR_OK : CKR_KEY_HANDLE_INVALID, label);
	return key;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return fprintf(stderr, "usage: %s MODULE LABEL PIN-FILE\n", argv[0]) < 0 ? 1 : 2;
	load(argv[1]);
	CK_SESSION_HANDLE session = log_in(argv[3]);
	CK_OBJECT_HANDLE key = find(session, argv[2]);
	CK_BYTE iv[16], plain[] = "sixteen bytes and a few more", sealed[64], opened[64];
	CK_ULONG sealed_length = sizeof(sealed), opened_length = sizeof(opened);
	check(p11->C_GenerateRandom(session, iv, sizeof(iv)), "C_GenerateRandom");
	CK_MECHANISM mechanism = { CKM_AES_CBC_PAD, iv, sizeof(iv) };
	check(p11->C_EncryptInit(session, &mechanism, key), "C_EncryptInit");
	check(p11->C_Encrypt(session, plain, sizeof(plain), sealed, &sealed_length), "C_Encrypt");
	check(p11->C_DecryptInit(session, &mechanism, key), "C_DecryptInit");
	check(p11->C_Decrypt(session, sealed, sealed_length, opened, &opened_length), "C_Decrypt");
	check(p11->C_Finalize(NULL), "C_Finalize");
	if (opened_length != sizeof(plain) || memcmp(opened, plain, sizeof(plain)) != 0)
		return 1;
	printf("%lu bytes sealed and opened\n", opened_length);
	return 0;
}
