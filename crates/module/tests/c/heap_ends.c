/* SPDX-License-Identifier: Apache-2.0 */
/* From one of its allocations on the module gets no memory, or only not at this one, and each time from a later one: no call ends the process, all say what is wrong, what was
 * acknowledged is there afterwards, and all works when there is memory again. The argument: how many allocations later each time. */
#include "common.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *there, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* How many allocations are left; negative where there is no end. */
static atomic_long left = -1;
static int once;

/* What is large and given back leaves room for a while. */
static int ends(size_t size)
{
	long now = left;
	if (size > 1 << 16 && now < 10) atomic_compare_exchange_strong(&left, &now, now > 0 ? 0 : now);
	while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1)) {}
	if (now == 0) errno = ENOMEM;
	if (now == 0 && once) left = -1;
	return now == 0;
}

void *malloc(size_t size)
{
	return ends(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return ends(count * size) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *there, size_t size)
{
	return ends(size) ? NULL : __libc_realloc(there, size);
}

int posix_memalign(void **made, size_t alignment, size_t size)
{
	if (ends(size)) return ENOMEM;
	*made = __libc_memalign(alignment, size);
	return *made == NULL ? ENOMEM : 0;
}

enum { OBJECTS = 4, ENOUGH = 1 << 30 };

static struct {
	int is_there[OBJECTS];
	int refused;
	long count;
} *shared;

static CK_OBJECT_CLASS class = CKO_DATA;

static CK_RV told(CK_RV rv)
{
	shared->refused += rv == CKR_HOST_MEMORY || rv == CKR_DEVICE_MEMORY;
	if (rv != CKR_OK && rv != CKR_HOST_MEMORY && rv != CKR_DEVICE_MEMORY) {
		/* What follows from an earlier refusal. */
		static const CK_RV follows[] = {CKR_SESSION_HANDLE_INVALID, CKR_USER_NOT_LOGGED_IN, CKR_OPERATION_NOT_INITIALIZED,
						CKR_KEY_HANDLE_INVALID, CKR_CRYPTOKI_NOT_INITIALIZED};
		size_t at = 0;
		while (at < sizeof(follows) / sizeof(*follows) && follows[at] != rv) at++;
		if (at == sizeof(follows) / sizeof(*follows)) FAIL("0x%lx where memory ends", rv);
	}
	return rv;
}

static CK_RV store(CK_SESSION_HANDLE session, int number, CK_OBJECT_HANDLE *object)
{
	CK_BYTE name = (CK_BYTE)('a' + number);
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}, {CKA_LABEL, &name, 1}};
	return p11->C_CreateObject(session, template, 3, object);
}

static void *other(void *session)
{
	CK_BYTE bytes[16];
	told(p11->C_GenerateRandom(*(CK_SESSION_HANDLE *)session, bytes, sizeof(bytes)));
	return NULL;
}

static void work(long allocations)
{
	CK_SESSION_HANDLE session = 0;
	CK_OBJECT_HANDLE objects[OBJECTS], keys[2] = {0}, found[10];
	CK_MECHANISM pair = {CKM_EC_KEY_PAIR_GEN, NULL, 0}, sign = {CKM_ECDSA_SHA256, NULL, 0};
	CK_BYTE p256[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}, signature[64];
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, p256, sizeof(p256)}};
	CK_ULONG count, length = sizeof(signature);
	load();
	left = allocations;
	told(p11->C_Initialize(NULL));
	told(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	told(p11->C_Login(session, CKU_USER, user_pin, 4));
	for (int at = 0; at < OBJECTS - 1; at++) shared->is_there[at] = told(store(session, at, &objects[at])) == CKR_OK;
	if (told(p11->C_FindObjectsInit(session, NULL, 0)) == CKR_OK) {
		told(p11->C_FindObjects(session, found, 10, &count));
		OK(p11->C_FindObjectsFinal(session));
	}
	told(p11->C_GenerateKeyPair(session, &pair, public, 1, NULL, 0, &keys[0], &keys[1]));
	if (told(p11->C_SignInit(session, &sign, keys[1])) == CKR_OK)
		told(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	if (shared->is_there[0]) shared->is_there[0] = told(p11->C_DestroyObject(session, objects[0])) != CKR_OK;
	pid_t child = fork();
	if (child == 0) {
		told(p11->C_Initialize(NULL));
		told(p11->C_Finalize(NULL));
		_exit(0);
	}
	CHECK(ended(child) == 0);
	shared->is_there[OBJECTS - 1] = told(store(session, OBJECTS - 1, &objects[OBJECTS - 1])) == CKR_OK;
	other(&session);
	shared->count = ENOUGH - left;
	left = -1;
	CK_RV rv = p11->C_Initialize(NULL);
	if (rv != CKR_CRYPTOKI_ALREADY_INITIALIZED) OK(rv);
	session = open_session();
	rv = p11->C_Login(session, CKU_USER, user_pin, 4);
	if (rv != CKR_USER_ALREADY_LOGGED_IN) OK(rv);
	check_works(session);
	OK(p11->C_Finalize(NULL));
	_exit(0);
}

/* Objects in memory use up what there is for such times: what ends something goes on. */
static void use_up(void)
{
	CK_OBJECT_HANDLE object = 0, last = 0;
	CK_ATTRIBUTE template = {CKA_CLASS, &class, sizeof(class)};
	CK_RV rv;
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	OK(p11->C_FindObjectsInit(session, NULL, 0));
	left = 0;
	while ((rv = p11->C_CreateObject(session, &template, 1, &object)) == CKR_OK) last = object;
	EXPECT(rv, CKR_HOST_MEMORY);
	OK(p11->C_FindObjectsFinal(session));
	OK(p11->C_DestroyObject(session, last));
	OK(p11->C_CloseSession(session));
	left = -1;
	check_works(user_session());
	OK(p11->C_Finalize(NULL));
	_exit(0);
}

/* In a process that has lacked nothing: what was acknowledged. */
static void look(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	for (int at = 0; at < OBJECTS; at++) {
		CK_BYTE name = (CK_BYTE)('a' + at);
		CK_ATTRIBUTE query[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_LABEL, &name, 1}};
		CK_OBJECT_HANDLE found[2];
		CK_ULONG count;
		OK(p11->C_FindObjectsInit(session, query, 2));
		OK(p11->C_FindObjects(session, found, 2, &count));
		OK(p11->C_FindObjectsFinal(session));
		CHECK(count == (CK_ULONG)shared->is_there[at]);
		if (count == 1) OK(p11->C_DestroyObject(session, found[0]));
	}
	OK(p11->C_Finalize(NULL));
	_exit(0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	alarm(240);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	pid_t child = fork();
	if (child == 0) {
		begin_as_user();
		OK(p11->C_Finalize(NULL));
		_exit(0);
	}
	CHECK(ended(child) == 0);
	child = fork();
	if (child == 0) use_up();
	CHECK(ended(child) == 0);
	child = fork();
	if (child == 0) work(ENOUGH);
	CHECK(ended(child) == 0);
	long all = shared->count, times = 0;
	for (long allocations = 0; allocations < 2 * all; allocations += atol(argv[1]), times++) {
		once = allocations >= all;
		child = fork();
		if (child == 0) look();
		CHECK(ended(child) == 0);
		memset(shared, 0, sizeof(*shared));
		child = fork();
		if (child == 0) work(allocations % all);
		int status = ended(child);
		if (status != 0 || (shared->refused == 0 && !once)) FAIL("%d after %ld of %ld allocations", status, allocations, all);
	}
	printf("memory ended after %ld of %ld allocations\n", times, all);
	return 0;
}
