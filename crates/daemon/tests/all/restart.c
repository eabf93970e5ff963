// SPDX-License-Identifier: Apache-2.0
// One process of the load in restart.rs: restart MODULE ROLE PROGRESS NUMBER PIN, until SIGTERM. ROLE: s, signs; l, logs in, makes
// and destroys keys, and signs in a second thread; f, signs, and forks now and then; t, signs in three threads. It says how often each call had which code.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <metaslot/pkcs11.h>

enum { NAMES = 64, LABEL = 32, THREADS = 3 };
static const uint64_t PATIENCE = 20000000000;
static CK_FUNCTION_LIST *p11;
static CK_SLOT_ID slot;
static __thread CK_SESSION_HANDLE session;
static volatile sig_atomic_t over;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
// When this process last did something, for the one that kills the daemon.
static volatile uint64_t *progress;
static struct {
	const char *name;
	CK_RV rv;
	unsigned long count;
} counts[NAMES];

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static CK_RV counted(const char *name, CK_RV rv)
{
	int at = 0;
	pthread_mutex_lock(&counting);
	while (at < NAMES - 1 && counts[at].name && (counts[at].name != name || counts[at].rv != rv))
		at++;
	counts[at].name = name;
	counts[at].rv = rv;
	counts[at].count++;
	pthread_mutex_unlock(&counting);
	if (rv == CKR_OK && progress)
		*progress = now();
	return rv;
}

static void end(int signal)
{
	over = signal;
}

static CK_RV open_session(void)
{
	return p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session);
}

static CK_RV find_token(void)
{
	CK_SLOT_ID slots[16];
	CK_TOKEN_INFO info;
	CK_ULONG count = 16;
	CK_RV rv = p11->C_GetSlotList(CK_TRUE, slots, &count);
	if (rv != CKR_OK)
		return rv;
	for (CK_ULONG at = 0; at < count; at++) {
		slot = slots[at];
		if (p11->C_GetTokenInfo(slot, &info) == CKR_OK && memcmp(info.label, "door ", 5) == 0)
			return open_session();
	}
	return CKR_TOKEN_NOT_PRESENT;
}

static CK_RV begin(void)
{
	CK_RV rv = p11->C_Initialize(NULL);
	return rv == CKR_OK ? find_token() : rv;
}

// The daemon may come later than the first program.
static CK_RV wait_for_token(void)
{
	uint64_t end = now() + PATIENCE;
	CK_RV rv = begin();
	while (rv == CKR_TOKEN_NOT_PRESENT && now() < end && !usleep(10000))
		rv = find_token();
	return rv;
}

// The only object of a class with a label.
static CK_RV find(CK_OBJECT_CLASS class, char *label, CK_OBJECT_HANDLE *object)
{
	CK_ATTRIBUTE template[] = { { CKA_CLASS, &class, sizeof class }, { CKA_LABEL, label, strlen(label) } };
	CK_OBJECT_HANDLE found[2];
	CK_ULONG count = 0;
	CK_RV rv = p11->C_FindObjectsInit(session, template, 2);
	if (rv == CKR_OK)
		rv = p11->C_FindObjects(session, found, 2, &count);
	CK_RV ended = p11->C_FindObjectsFinal(session);
	if (rv != CKR_OK)
		return rv;
	*object = count ? found[0] : CK_INVALID_HANDLE;
	return count > 1 ? CKR_GENERAL_ERROR : ended;
}

static CK_RV sign(CK_OBJECT_HANDLE private, CK_OBJECT_HANDLE public)
{
	CK_MECHANISM mechanism = { CKM_ECDSA, NULL, 0 };
	CK_BYTE hash[32] = { (CK_BYTE)random() }, signature[64];
	CK_ULONG length = sizeof signature;
	CK_RV rv = p11->C_SignInit(session, &mechanism, private);
	if (rv == CKR_OK)
		rv = p11->C_Sign(session, hash, sizeof hash, signature, &length);
	if (counted("sign", rv) != CKR_OK || random() % 8)
		return rv;
	rv = p11->C_VerifyInit(session, &mechanism, public);
	if (rv == CKR_OK)
		rv = p11->C_Verify(session, hash, sizeof hash, signature, length);
	return counted("verify", rv);
}

static void decrypt(CK_OBJECT_HANDLE private, CK_OBJECT_HANDLE public)
{
	CK_MECHANISM mechanism = { CKM_RSA_PKCS, NULL, 0 };
	CK_BYTE sealed[256], opened[256];
	CK_ULONG length = sizeof sealed, size = sizeof opened;
	CK_RV rv = p11->C_EncryptInit(session, &mechanism, public);
	if (rv == CKR_OK)
		rv = p11->C_Encrypt(session, (CK_BYTE *)"words", 5, sealed, &length);
	if (counted("encrypt", rv) != CKR_OK)
		return;
	rv = p11->C_DecryptInit(session, &mechanism, private);
	if (rv == CKR_OK)
		rv = p11->C_Decrypt(session, sealed, length, opened, &size);
	if (rv == CKR_OK && (size != 5 || memcmp(opened, "words", 5)))
		rv = CKR_GENERAL_ERROR;
	counted("decrypt", rv);
}

static void look(CK_OBJECT_HANDLE private)
{
	CK_BYTE hash[32], label[LABEL];
	CK_ULONG length = sizeof hash;
	CK_MECHANISM mechanism = { CKM_SHA256, NULL, 0 };
	CK_RV rv = p11->C_DigestInit(session, &mechanism);
	if (rv == CKR_OK)
		rv = p11->C_Digest(session, hash, sizeof hash, hash, &length);
	counted("digest", rv);
	CK_ATTRIBUTE wanted = { CKA_LABEL, label, sizeof label };
	rv = p11->C_GetAttributeValue(session, private, &wanted, 1);
	counted("read", rv == CKR_OK && memcmp(label, "site", 4) ? CKR_GENERAL_ERROR : rv);
	CK_OBJECT_HANDLE found = CK_INVALID_HANDLE;
	if (counted("find", find(CKO_PRIVATE_KEY, "site", &found)) == CKR_OK && found != private)
		counted("lost", found);
}

// A key that was acknowledged is there until it is destroyed.
static void make(const char *number, unsigned long serial)
{
	char label[LABEL];
	snprintf(label, sizeof label, "made-%s-%lu", number, serial);
	CK_BYTE p256[] = { 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7 };
	CK_BBOOL yes = CK_TRUE;
	CK_ATTRIBUTE public[] = { { CKA_EC_PARAMS, p256, sizeof p256 }, { CKA_LABEL, label, strlen(label) },
		{ CKA_TOKEN, &yes, 1 }, { CKA_VERIFY, &yes, 1 } };
	CK_ATTRIBUTE private[] = { { CKA_TOKEN, &yes, 1 }, { CKA_LABEL, label, strlen(label) }, { CKA_SIGN, &yes, 1 } };
	CK_MECHANISM mechanism = { CKM_EC_KEY_PAIR_GEN, NULL, 0 };
	CK_OBJECT_HANDLE pair[2], found;
	CK_RV rv = p11->C_GenerateKeyPair(session, &mechanism, public, 4, private, 3, &pair[0], &pair[1]);
	if (counted("generate", rv) != CKR_OK)
		return;
	for (int round = 0; round < 4; round++)
		sign(pair[1], pair[0]);
	if (counted("find", find(CKO_PRIVATE_KEY, label, &found)) == CKR_OK && found != pair[1])
		counted("lost", found);
	for (int half = 0; half < 2; half++)
		counted("destroy", p11->C_DestroyObject(session, pair[half]));
	if (counted("find", find(CKO_PRIVATE_KEY, label, &found)) == CKR_OK && found)
		counted("undead", found);
}

static void fork_once(void)
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		CK_OBJECT_HANDLE private = 0, public = 0;
		CK_RV rv = begin();
		for (int round = 0; round < 3 && rv == CKR_OK; round++) {
			rv = find(CKO_PRIVATE_KEY, "site", &private);
			if (rv == CKR_OK)
				rv = find(CKO_PUBLIC_KEY, "site", &public);
			if (rv == CKR_OK)
				rv = sign(private, public);
		}
		_exit(rv == CKR_OK ? 0 : rv < 255 ? (int)rv : 255);
	}
	int status = 255;
	waitpid(child, &status, 0);
	counted("child", WIFEXITED(status) ? (CK_RV)WEXITSTATUS(status) : CKR_GENERAL_ERROR);
}

static void work(char role, const char *number)
{
	CK_OBJECT_HANDLE keys[4];
	for (int at = 0; at < 4; at++)
		counted("find", find(at % 2 ? CKO_PUBLIC_KEY : CKO_PRIVATE_KEY, at < 2 ? "site" : "seal", &keys[at]));
	for (unsigned long round = 0; !over; round++) {
		sign(keys[0], keys[1]);
		if (round % 8 == 0)
			look(keys[0]);
		if (round % 8 == 1)
			decrypt(keys[2], keys[3]);
		if (role == 'l' && round % 8 == 2)
			make(number, round);
		if (role == 'f' && round % 128 == 3)
			fork_once();
	}
}

static void *thread(void *number)
{
	if (counted("open", open_session()) == CKR_OK)
		work('s', number);
	return NULL;
}

int main(int argc, char **argv)
{
	CK_C_GetFunctionList list = NULL;
	void *library = argc == 6 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (library)
		*(void **)&list = dlsym(library, "C_GetFunctionList");
	int file = open(argv[3], O_RDWR);
	if (!list || list(&p11) != CKR_OK || file < 0 || signal(SIGTERM, end) == SIG_ERR)
		return 1;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (page == MAP_FAILED || counted("begin", wait_for_token()) != CKR_OK)
		return 1;
	progress = (volatile uint64_t *)page + atoi(argv[4]);
	srandom((unsigned)getpid());
	if (*argv[2] == 'l')
		counted("login", p11->C_Login(session, CKU_USER, (CK_BYTE *)argv[5], strlen(argv[5])));
	pthread_t threads[THREADS - 1];
	int more = *argv[2] == 't' ? THREADS - 1 : *argv[2] == 'l';
	for (int at = 0; at < more; at++)
		if (pthread_create(&threads[at], NULL, thread, argv[4]))
			return 1;
	work(*argv[2], argv[4]);
	for (int at = 0; at < more; at++)
		pthread_join(threads[at], NULL);
	for (int at = 0; at < NAMES && counts[at].name; at++)
		printf("%s 0x%lx %lu\n", counts[at].name, counts[at].rv, counts[at].count);
	return p11->C_Finalize(NULL) != CKR_OK;
}
