// SPDX-License-Identifier: Apache-2.0
// One process of the measurement in speed.rs: speed MODULE PIN. For each letter that it reads it does something so often, and says
// how long one of it took in nanoseconds: e, a P-256 signature; d, a SHA-256 of 64 bytes; r, as many RSA signatures as take half a
// second; of those it says how many there were; t, the same by sixteen threads, each with a session of its own.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <metaslot/pkcs11.h>

enum { ROUNDS = 200, HALF = 500000000, THREADS = 16 };
static CK_FUNCTION_LIST *p11;
static CK_SLOT_ID slot;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE ec, rsa;

static void check(CK_RV rv, const char *what)
{
	if (rv == CKR_OK)
		return;
	fprintf(stderr, "%s: 0x%lx\n", what, rv);
	exit(1);
}

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void open_token(CK_UTF8CHAR *pin)
{
	CK_SLOT_ID slots[16];
	CK_TOKEN_INFO info;
	CK_ULONG count = 16;
	check(p11->C_Initialize(NULL), "C_Initialize");
	check(p11->C_GetSlotList(CK_TRUE, slots, &count), "C_GetSlotList");
	for (CK_ULONG at = 0; at < count && session == CK_INVALID_HANDLE; at++)
		if (p11->C_GetTokenInfo(slots[at], &info) == CKR_OK && memcmp(info.label, "door ", 5) == 0)
			check(p11->C_OpenSession(slot = slots[at], CKF_SERIAL_SESSION, NULL, NULL, &session), "C_OpenSession");
	check(p11->C_Login(session, CKU_USER, pin, strlen((char *)pin)), "C_Login");
}

static CK_OBJECT_HANDLE find(char *label)
{
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_ATTRIBUTE template[] = { { CKA_CLASS, &class, sizeof class }, { CKA_LABEL, label, strlen(label) } };
	CK_OBJECT_HANDLE key;
	CK_ULONG count = 0;
	check(p11->C_FindObjectsInit(session, template, 2), "C_FindObjectsInit");
	check(p11->C_FindObjects(session, &key, 1, &count), "C_FindObjects");
	check(p11->C_FindObjectsFinal(session), "C_FindObjectsFinal");
	check(count ? CKR_OK : CKR_KEY_HANDLE_INVALID, label);
	return key;
}

static void sign(CK_SESSION_HANDLE session, CK_MECHANISM_TYPE type, CK_OBJECT_HANDLE key)
{
	CK_MECHANISM mechanism = { type, NULL, 0 };
	CK_BYTE hash[32] = { 1 }, signature[256];
	CK_ULONG length = sizeof signature;
	check(p11->C_SignInit(session, &mechanism, key), "C_SignInit");
	check(p11->C_Sign(session, hash, sizeof hash, signature, &length), "C_Sign");
}

static void digest(void)
{
	CK_MECHANISM mechanism = { CKM_SHA256, NULL, 0 };
	CK_BYTE data[64] = { 1 }, hash[32];
	CK_ULONG length = sizeof hash;
	check(p11->C_DigestInit(session, &mechanism), "C_DigestInit");
	check(p11->C_Digest(session, data, sizeof data, hash, &length), "C_Digest");
}

static void *thread(void *count)
{
	CK_SESSION_HANDLE own;
	check(p11->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &own), "C_OpenSession");
	for (long begin = now(); now() < begin + HALF; ++*(long *)count)
		sign(own, CKM_RSA_PKCS, rsa);
	check(p11->C_CloseSession(own), "C_CloseSession");
	return NULL;
}

static long threads(void)
{
	pthread_t all[THREADS];
	long counts[THREADS] = { 0 }, sum = 0;
	for (int at = 0; at < THREADS; at++)
		check(pthread_create(&all[at], NULL, thread, &counts[at]) ? CKR_HOST_MEMORY : CKR_OK, "a thread");
	for (int at = 0; at < THREADS; at++, sum += counts[at - 1])
		pthread_join(all[at], NULL);
	return sum;
}

int main(int argc, char **argv)
{
	CK_C_GetFunctionList list = NULL;
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (library)
		*(void **)&list = dlsym(library, "C_GetFunctionList");
	check(list ? list(&p11) : CKR_FUNCTION_FAILED, "C_GetFunctionList");
	open_token((CK_UTF8CHAR *)argv[2]);
	ec = find("site"), rsa = find("seal");
	for (int letter; (letter = getchar()) != EOF;) {
		if (letter == 't') {
			printf("%ld\n", threads());
			fflush(stdout);
			continue;
		}
		long begin = now(), count = 0;
		while (letter == 'r' ? now() < begin + HALF : count < ROUNDS) {
			if (letter == 'd')
				digest();
			else
				sign(session, letter == 'e' ? CKM_ECDSA : CKM_RSA_PKCS, letter == 'e' ? ec : rsa);
			count++;
		}
		printf("%ld\n", letter == 'r' ? count : (now() - begin) / count);
		fflush(stdout);
	}
	return 0;
}
