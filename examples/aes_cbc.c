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
	if (rv != CKR_OK) {
		fprintf(stderr, "%s: 0x%lx\n", what, rv);
		exit(1);
	}
}

static void load(const char *module)
{
	void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	CK_RV (*list)(CK_FUNCTION_LIST **) = (CK_RV (*)(CK_FUNCTION_LIST **))dlsym(library, "C_GetFunctionList");
	check(list == NULL ? CKR_FUNCTION_FAILED : list(&p11), "C_GetFunctionList");
	check(p11->C_Initialize(NULL), "C_Initialize");
}

static CK_SESSION_HANDLE log_in(const char *pin_file)
{
	CK_UTF8CHAR pin[256];
	FILE *file = fopen(pin_file, "r");
	if (file == NULL) {
		perror(pin_file);
		exit(1);
	}
	size_t length = fread(pin, 1, sizeof(pin), file);
	fclose(file);
	while (length > 0 && (pin[length - 1] == '\n' || pin[length - 1] == '\r'))
		length--;

	CK_SESSION_HANDLE session;
	check(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), "C_OpenSession");
	CK_RV rv = p11->C_Login(session, CKU_USER, pin, length);
	memset(pin, 0, sizeof(pin));
	check(rv, "C_Login");
	return session;
}

static CK_OBJECT_HANDLE find(CK_SESSION_HANDLE session, char *label)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ATTRIBUTE template[] = {
		{ CKA_CLASS, &class, sizeof(class) },
		{ CKA_LABEL, label, strlen(label) },
	};
	CK_OBJECT_HANDLE key;
	CK_ULONG count = 0;
	check(p11->C_FindObjectsInit(session, template, 2), "C_FindObjectsInit");
	check(p11->C_FindObjects(session, &key, 1, &count), "C_FindObjects");
	check(p11->C_FindObjectsFinal(session), "C_FindObjectsFinal");
	if (count == 0) {
		fprintf(stderr, "no key '%s'\n", label);
		exit(1);
	}
	return key;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: %s MODULE LABEL PIN-FILE\n", argv[0]);
		return 2;
	}
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
	if (opened_length != sizeof(plain) || memcmp(opened, plain, sizeof(plain)) != 0) {
		fprintf(stderr, "not what was encrypted\n");
		return 1;
	}
	printf("%lu bytes sealed and opened\n", opened_length);
	check(p11->C_Finalize(NULL), "C_Finalize");
	return 0;
}
