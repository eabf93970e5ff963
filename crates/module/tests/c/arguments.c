// SPDX-License-Identifier: Apache-2.0
/* Every function with every argument NULL, zero, huge and stale, alone and in pairs, while operations
 * are active. The list of functions and of their parameters is made from the header.
 *
 * Each parameter of every C function here is a pointer or an unsigned number, so on this platform
 * all of them can be called through one type. */
#include "common.h"

struct function {
	const char *name;
	const char *kinds; /* p: pointer, s: session, o: object, n: number */
};

static const struct function functions[] = {
#include "functions.inc"
};

typedef CK_RV (*any)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		     uintptr_t, uintptr_t, uintptr_t);

#define MOST 16
struct values {
	int count;
	uintptr_t of[MOST];
};

static CK_SESSION_HANDLE session, stale_session;
static CK_OBJECT_HANDLE key, stale_key;
static char *zeros, *ones;
static CK_MECHANISM *mechanism;
static CK_ATTRIBUTE *template;
static CK_GCM_PARAMS gcm;
static char *unaligned; /* a whole template at an odd address */
static unsigned long calls;

/* What is called now, for the report of a crash. */
static const struct function *current;
static uintptr_t given[10];

static void crashed(int signal)
{
	printf("signal %d in %s(", signal, current->name);
	for (size_t i = 0; i < strlen(current->kinds); i++) printf("%s0x%lx", i ? ", " : "", given[i]);
	printf(")\n");
	fflush(stdout);
	_exit(1);
}

/* Memory with nothing behind it. */
static char *memory(size_t length, int fill)
{
	char *start = mmap(NULL, length * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(start != MAP_FAILED);
	CHECK(munmap(start + length, length) == 0);
	memset(start, fill, length);
	return start;
}

static void set_up(void)
{
	CK_BYTE value[16] = {1, 2, 3};
	session = open_session();
	stale_session = open_session();
	OK(p11->C_CloseSession(stale_session));
	key = import_key(session, CKK_AES, value, 16);
	stale_key = import_key(session, CKK_AES, value, 16);
	OK(p11->C_DestroyObject(session, stale_key));
}

/* Operations of every kind, so that the second half of each pair of functions has work. */
static void activate(void)
{
	CK_BYTE iv[16] = {0};
	CK_MECHANISM digest = {CKM_SHA256, NULL, 0}, cipher = {CKM_AES_CBC_PAD, iv, 16},
		     mac = {CKM_AES_CMAC, NULL, 0};
	CK_SESSION_INFO info;
	if (p11->C_GetSessionInfo(session, &info) != CKR_OK) {
		CK_RV rv = p11->C_Initialize(NULL);
		CHECK(rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED);
		set_up();
	}
	if (p11->C_GetObjectSize(session, key, &(CK_ULONG){0}) != CKR_OK) {
		CK_BYTE value[16] = {1, 2, 3};
		key = import_key(session, CKK_AES, value, 16);
	}
	p11->C_SessionCancel(session, CKF_DIGEST | CKF_ENCRYPT | CKF_DECRYPT | CKF_SIGN | CKF_VERIFY |
						  CKF_FIND_OBJECTS);
	p11->C_DigestInit(session, &digest);
	p11->C_EncryptInit(session, &cipher, key);
	p11->C_DecryptInit(session, &cipher, key);
	p11->C_SignInit(session, &mac, key);
	p11->C_VerifyInit(session, &mac, key);
	p11->C_FindObjectsInit(session, NULL, 0);
}

static void fill(void)
{
	memset(zeros, 0, 4096);
	memset(ones, 0xff, 4096);
	memset(mechanism, 0, 4096);
	memset(template, 0, 4096);
	memset(&gcm, 0, sizeof gcm);
	gcm = (CK_GCM_PARAMS){(CK_BYTE *)zeros, 12, 96, NULL, 0, 128};
	mechanism[0] = (CK_MECHANISM){CKM_AES_GCM, &gcm, sizeof gcm};
	template[0] = (CK_ATTRIBUTE){CKA_CLASS, zeros, 8};
	template[1] = (CK_ATTRIBUTE){CKA_LABEL, NULL, 0};
	template[2] = (CK_ATTRIBUTE){CKA_WRAP_TEMPLATE, template, sizeof *template};
	template[3] = (CK_ATTRIBUTE){CKA_VALUE, NULL, 77};
	memcpy(unaligned, template, 8 * sizeof *template);
}

static struct values values_of(char kind)
{
	struct values pointers = {8, {(uintptr_t)zeros, 0, (uintptr_t)ones, (uintptr_t)mechanism,
				      (uintptr_t)template, (uintptr_t)(zeros + 1), (uintptr_t)(ones + 3),
				      (uintptr_t)unaligned}};
	struct values sessions = {5, {session, 0, stale_session, ~0UL, key}};
	struct values objects = {5, {key, 0, stale_key, ~0UL, session}};
	struct values numbers = {14, {16, 0, 1, 3, 4, 8, 512, 513, 4096, 0x7fffffff, 0x80000000,
				      1UL << 40, 1UL << 63, ~0UL}};
	switch (kind) {
	case 'p': return pointers;
	case 's': return sessions;
	case 'o': return objects;
	default: return numbers;
	}
}

static void call(const struct function *function, any pointer, const uintptr_t *arguments)
{
	int waits = strcmp(function->name, "C_WaitForSlotEvent") == 0;
	activate();
	fill();
	memcpy(given, arguments, sizeof given);
	if (waits) given[0] |= CKF_DONT_BLOCK;
	current = function;
	CK_RV rv = pointer(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7],
			   given[8], given[9]);
	calls++;
	/* An invalid session comes before every other error (PKCS#11 3.2 §5.1.7). */
	if (function->kinds[0] != 's' || given[0] == session) return;
	if (rv != CKR_SESSION_HANDLE_INVALID && rv != CKR_FUNCTION_NOT_SUPPORTED &&
	    rv != CKR_FUNCTION_NOT_PARALLEL)
		FAIL("%s of no session: 0x%lx", function->name, rv);
}

/* These derive keys from PINs, on purpose slowly. */
static int is_slow(const char *name)
{
	static const char *const slow[] = {"C_InitToken", "C_Login", "C_SetPIN", "C_InitPIN"};
	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
		if (strcmp(name, slow[i]) == 0) return 1;
	return 0;
}

static void vary(const struct function *function, any pointer)
{
	size_t count = strlen(function->kinds);
	uintptr_t arguments[10] = {0};
	for (size_t i = 0; i < count; i++) arguments[i] = values_of(function->kinds[i]).of[0];
	for (size_t i = 0; i < count; i++) {
		struct values first = values_of(function->kinds[i]);
		for (int a = 0; a < first.count; a++) {
			uintptr_t kept = arguments[i];
			arguments[i] = first.of[a];
			call(function, pointer, arguments);
			for (size_t j = i + 1; j < count && !is_slow(function->name); j++) {
				struct values second = values_of(function->kinds[j]);
				for (int b = 1; b < second.count; b++) {
					uintptr_t other = arguments[j];
					arguments[j] = second.of[b];
					call(function, pointer, arguments);
					arguments[j] = other;
				}
			}
			arguments[i] = kept;
		}
	}
}

int main(void)
{
	struct sigaction action = {.sa_handler = crashed};
	alarm(300);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGABRT, &action, NULL);
	sigaction(SIGILL, &action, NULL);
	load();
	zeros = memory(1 << 16, 0);
	ones = memory(1 << 16, 0xff);
	mechanism = (CK_MECHANISM *)memory(1 << 16, 0);
	template = (CK_ATTRIBUTE *)memory(1 << 16, 0);

	unaligned = memory(1 << 16, 0) + 1;

	/* Before it is initialised, after it is finalised: nothing works, nothing crashes. */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
			any pointer;
			*(void **)&pointer = dlsym(library, functions[i].name);
			if (pointer == NULL) FAIL("%s is not exported", functions[i].name);
			if (strncmp(functions[i].name, "C_GetInterface", 14) == 0) continue;
			if (strcmp(functions[i].name, "C_GetFunctionList") == 0) continue;
			if (strcmp(functions[i].name, "C_Initialize") == 0) continue;
			current = &functions[i];
			EXPECT(pointer(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), CKR_CRYPTOKI_NOT_INITIALIZED);
		}
		if (round == 0) {
			OK(p11->C_Initialize(NULL));
			OK(p11->C_Finalize(NULL));
		}
	}
	OK(p11->C_Initialize(NULL));
	set_up();
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		any pointer;
		*(void **)&pointer = dlsym(library, functions[i].name);
		vary(&functions[i], pointer);
	}
	activate();
	check_works(open_session());
	printf("%lu calls of %zu functions\n", calls, sizeof functions / sizeof *functions);
	return 0;
}
