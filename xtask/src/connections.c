/* SPDX-License-Identifier: Apache-2.0 */
/* What a key costs a server that forks for each connection: children that only end, and children that sign once, with a key of
 * OpenSSL's that the parent has read, or with one in a token, which each opens anew (PKCS#11 3.2 §5.4: a child calls
 * C_Initialize). One line for each child: its kind, and nanoseconds from before the fork until its end is known. */
#include <dlfcn.h>
#include <metaslot/pkcs11.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 10 };

#define NEED(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s failed\n", #what); \
			exit(1); \
		} \
	} while (0)

struct key {
	const char *name;
	CK_FUNCTION_LIST *p11;
	EVP_PKEY *file;
};

static const char *pin;
static unsigned char digest[32] = {1};

static void sign_with_token(CK_FUNCTION_LIST *p11)
{
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}};
	CK_MECHANISM mechanism = {CKM_ECDSA, NULL, 0};
	CK_SESSION_HANDLE session;
	CK_OBJECT_HANDLE key;
	CK_SLOT_ID slots[16];
	CK_ULONG count = 16, found, size = 64;
	unsigned char signature[64];
	/* SoftHSM takes a child for its parent. */
	if (p11->C_Initialize(NULL) == CKR_CRYPTOKI_ALREADY_INITIALIZED)
		NEED(p11->C_Finalize(NULL) == CKR_OK && p11->C_Initialize(NULL) == CKR_OK);
	NEED(p11->C_GetSlotList(CK_TRUE, slots, &count) == CKR_OK && count > 0);
	NEED(p11->C_OpenSession(slots[0], CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK);
	NEED(p11->C_Login(session, CKU_USER, (CK_UTF8CHAR *)pin, strlen(pin)) == CKR_OK);
	NEED(p11->C_FindObjectsInit(session, template, 1) == CKR_OK);
	NEED(p11->C_FindObjects(session, &key, 1, &found) == CKR_OK && found == 1);
	NEED(p11->C_FindObjectsFinal(session) == CKR_OK);
	NEED(p11->C_SignInit(session, &mechanism, key) == CKR_OK);
	NEED(p11->C_Sign(session, digest, sizeof digest, signature, &size) == CKR_OK);
}

static void sign(const struct key *key)
{
	unsigned char signature[128];
	size_t size = sizeof signature;
	EVP_PKEY_CTX *context;
	if (key->p11 != NULL) {
		sign_with_token(key->p11);
	} else if (key->file != NULL) {
		context = EVP_PKEY_CTX_new(key->file, NULL);
		NEED(context != NULL && EVP_PKEY_sign_init(context) == 1);
		NEED(EVP_PKEY_sign(context, signature, &size, digest, sizeof digest) == 1);
	}
}

static long nanoseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static long connection(const struct key *key)
{
	int status;
	long begun = nanoseconds();
	pid_t child = fork();
	if (child == 0) {
		sign(key);
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	return nanoseconds() - begun;
}

/* The parent has opened the token, as a server does that checks its configuration. */
static CK_FUNCTION_LIST *token(const char *path)
{
	CK_C_GetFunctionList list;
	CK_FUNCTION_LIST *p11;
	void *module = dlopen(path, RTLD_NOW);
	NEED(module != NULL);
	*(void **)&list = dlsym(module, "C_GetFunctionList");
	NEED(list != NULL && list(&p11) == CKR_OK);
	sign_with_token(p11);
	return p11;
}

/* connections ROUNDS PIN FILE MODULE... */
int main(int count, char **arguments)
{
	struct key keys[8] = {{"fork", NULL, NULL}, {"file", NULL, NULL}};
	int kinds = 2, rounds, last;
	FILE *pem;
	NEED(count > 3 && count < 10);
	rounds = atoi(arguments[1]);
	pin = arguments[2];
	pem = fopen(arguments[3], "r");
	NEED(pem != NULL && (keys[1].file = PEM_read_PrivateKey(pem, NULL, NULL, NULL)) != NULL);
	for (int at = 4; at < count; at++) keys[kinds++] = (struct key){arguments[at], token(arguments[at]), NULL};
	last = WARM_UP + rounds;
	for (int round = 0; round < last; round++)
		for (int at = 0; at < kinds; at++) {
			long time = connection(&keys[at]);
			if (round >= WARM_UP) printf("%s\t%ld\n", keys[at].name, time);
		}
	return 0;
}
