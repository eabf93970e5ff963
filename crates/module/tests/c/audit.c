/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit log promises, tried: `events` does one thing of each kind, `crowd` makes keys in eight processes of eight
 * threads, of which half are killed, and prints the label of each key that was acknowledged, `pending` asks for derivations until they
 * are there, `login` tries a PIN and gets the code that is said. The harness reads the log. */
#include "common.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static CK_SESSION_HANDLE session;
static CK_OBJECT_CLASS secret = CKO_SECRET_KEY;
static CK_KEY_TYPE aes = CKK_AES, generic = CKK_GENERIC_SECRET;
static CK_ULONG length = 32;

static CK_OBJECT_HANDLE generate(CK_SESSION_HANDLE own, CK_MECHANISM_TYPE type, char *label, CK_BBOOL *stored)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_OBJECT_HANDLE key = 0;
	CK_ATTRIBUTE template[] = {
		{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, stored, 1},
		{CKA_LABEL, label, strlen(label)},	 {CKA_EXTRACTABLE, &yes, 1},
		{CKA_SENSITIVE, &yes, 1},
	};
	OK(p11->C_GenerateKey(own, &mechanism, template, 5, &key));
	return key;
}

static CK_OBJECT_HANDLE generate_for(CK_ATTRIBUTE_TYPE usage, CK_MECHANISM_TYPE type, char *label)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_OBJECT_HANDLE key = 0;
	CK_ATTRIBUTE template[] = {
		{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, &yes, 1},
		{CKA_LABEL, label, strlen(label)},	 {usage, &yes, 1},
		{CKA_UNWRAP, &yes, 1},
	};
	OK(p11->C_GenerateKey(session, &mechanism, template, usage == CKA_WRAP ? 5 : 4, &key));
	return key;
}

/* A key of the token that an asynchronous session agrees on: of the call that answers CKR_PENDING there is no line. */
static void agree(CK_ATTRIBUTE *template, CK_ULONG count)
{
	CK_BYTE curve[] = {0x06, 0x03, 0x2b, 0x65, 0x6e}, point[40];
	CK_MECHANISM pair = {CKM_EC_MONTGOMERY_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, curve, sizeof curve}}, private[] = {{CKA_DERIVE, &yes, 1}};
	CK_ATTRIBUTE value = {CKA_EC_POINT, point, sizeof point};
	CK_OBJECT_HANDLE base, peer, derived;
	CK_SESSION_HANDLE asynchronous;
	CK_FLAGS flags = CKF_SERIAL_SESSION | CKF_RW_SESSION | CKF_ASYNC_SESSION;
	OK(p11->C_OpenSession(0, flags, NULL, NULL, &asynchronous));
	OK(p11->C_GenerateKeyPair(session, &pair, public, 1, private, 1, &peer, &base));
	OK(p11->C_GetAttributeValue(session, peer, &value, 1));
	CK_ECDH1_DERIVE_PARAMS params = {CKD_NULL, 0, NULL, value.ulValueLen, point};
	CK_MECHANISM agree = {CKM_ECDH1_DERIVE, &params, sizeof params};
	CK_RV rv = p11->C_DeriveKey(asynchronous, &agree, base, template, count, &derived);
	CK_ASYNC_DATA result;
	if (rv == CKR_PENDING)
		while ((rv = p11->C_AsyncComplete(asynchronous, (CK_UTF8CHAR *)"C_DeriveKey", &result)) == CKR_PENDING)
			;
	OK(rv);
	OK(p11->C_CloseSession(asynchronous));
}

static void keys(void)
{
	CK_MECHANISM wrap = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_HKDF_PARAMS hkdf = {CK_TRUE, CK_TRUE, CKM_SHA256, CKF_HKDF_SALT_NULL, NULL, 0, 0, (CK_BYTE *)"info", 4};
	CK_MECHANISM derive = {CKM_HKDF_DERIVE, &hkdf, sizeof hkdf};
	CK_ATTRIBUTE made[] = {
		{CKA_CLASS, &secret, sizeof secret},	 {CKA_KEY_TYPE, &generic, sizeof generic},
		{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, &yes, 1},
		{CKA_LABEL, "derived", 7},
	};
	CK_ATTRIBUTE unwrapped[] = {
		{CKA_CLASS, &secret, sizeof secret}, {CKA_KEY_TYPE, &aes, sizeof aes},
		{CKA_TOKEN, &yes, 1},		     {CKA_LABEL, "back", 4},
	};
	CK_ATTRIBUTE label = {CKA_LABEL, "renamed", 7}, copied = {CKA_LABEL, "copy", 4};
	CK_BYTE out[64], value[16] = {1};
	CK_GCM_PARAMS gcm = {value, 12, 96, NULL, 0, 32};
	CK_MECHANISM short_tag = {CKM_AES_GCM, &gcm, sizeof gcm};
	CK_ULONG out_length = sizeof out;
	CK_MECHANISM pair = {CKM_ML_KEM_KEY_PAIR_GEN, NULL, 0}, kem = {CKM_ML_KEM, NULL, 0};
	CK_ML_KEM_PARAMETER_SET_TYPE parameters = CKP_ML_KEM_512;
	CK_ATTRIBUTE set[] = {{CKA_PARAMETER_SET, &parameters, sizeof parameters}};
	CK_BYTE sealed[768];
	CK_ULONG sealed_length = sizeof sealed;
	CK_OBJECT_HANDLE first, copy, back, derived, public_key, private_key;
	CK_OBJECT_HANDLE wrapper = generate_for(CKA_WRAP, CKM_AES_KEY_GEN, "wrapper");
	CK_OBJECT_HANDLE base = generate_for(CKA_DERIVE, CKM_GENERIC_SECRET_KEY_GEN, "base");

	/* A session's object is not the log's. */
	OK(p11->C_DestroyObject(session, generate(session, CKM_AES_KEY_GEN, "fleeting", &no)));
	first = generate(session, CKM_AES_KEY_GEN, "first\"\n", &yes);
	OK(p11->C_SetAttributeValue(session, first, &label, 1));
	OK(p11->C_CopyObject(session, first, &copied, 1, &copy));
	/* Asks for a length. */
	OK(p11->C_WrapKey(session, &wrap, wrapper, first, NULL, &out_length));
	OK(p11->C_WrapKey(session, &wrap, wrapper, first, out, &out_length));
	OK(p11->C_UnwrapKey(session, &wrap, wrapper, out, out_length, unwrapped, 4, &back));
	OK(p11->C_DeriveKey(session, &derive, base, made, 5, &derived));
	agree(made, 5);
	OK(p11->C_GenerateKeyPair(session, &pair, set, 1, NULL, 0, &public_key, &private_key));
	OK(p11->C_EncapsulateKey(session, &kem, public_key, made, 5, NULL, &sealed_length, NULL));
	OK(p11->C_EncapsulateKey(session, &kem, public_key, made, 5, sealed, &sealed_length, &derived));
	OK(p11->C_DecapsulateKey(session, &kem, private_key, &made[4], 1, sealed, sealed_length, &derived));
	OK(p11->C_DecapsulateKey(session, &kem, private_key, made, 5, sealed, sealed_length, &derived));
	OK(p11->C_DestroyObject(session, copy));
	/* Fails, not by the policy. */
	EXPECT(p11->C_DestroyObject(session, copy), CKR_OBJECT_HANDLE_INVALID);
	/* By the policy, in a function that leaves no line otherwise. */
	EXPECT(p11->C_EncryptInit(session, &short_tag, import_key(session, CKK_AES, value, sizeof value)),
	       CKR_MECHANISM_PARAM_INVALID);
}

static void events(void)
{
	CK_INTERFACE *interface;
	METASLOT_FUNCTION_LIST *metaslot;
	METASLOT_EXAMINED examined;
	CK_UTF8CHAR wrong[] = "9999", next[] = "4321";
	make_token();
	session = open_session();
	EXPECT(p11->C_Login(session, CKU_USER, wrong, 4), CKR_PIN_INCORRECT);
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	keys();
	OK(p11->C_SetPIN(session, user_pin, 4, next, 4));
	EXPECT(p11->C_SetPIN(session, user_pin, 4, next, 4), CKR_PIN_INCORRECT);
	OK(p11->C_Logout(session));
	EXPECT(p11->C_Logout(session), CKR_USER_NOT_LOGGED_IN);
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	OK(metaslot->ExamineToken(0, CKU_SO, so_pin, 8, CK_TRUE, NULL, NULL, &examined));
	EXPECT(metaslot->ExamineToken(0, CKU_USER, wrong, 4, CK_FALSE, NULL, NULL, &examined), CKR_PIN_INCORRECT);
	OK(metaslot->RenameToken(0, CKU_SO, so_pin, 8, (CK_UTF8CHAR *)"other", 5));
	OK(p11->C_CloseSession(session));
	EXPECT(metaslot->RemoveToken(0, CKU_SO, so_pin, 8, (CK_UTF8CHAR *)"boundary", 8), CKR_DEVICE_ERROR);
	OK(metaslot->RenameToken(0, CKU_SO, so_pin, 8, (CK_UTF8CHAR *)"boundary", 8));
	EXPECT(p11->C_InitToken(0, wrong, 4, (CK_UTF8CHAR *)"boundary                        "), CKR_PIN_INCORRECT);
}

enum { PROCESSES = 8, THREADS = 8, KEYS = 4 };
/* How many keys each thread was told of; shared, so that nothing is lost with a process that is killed. */
static _Atomic int (*made)[THREADS];

static void *make_keys(void *argument)
{
	int number = (int)(intptr_t)argument;
	CK_SESSION_HANDLE own = open_session();
	for (int at = 0; at < KEYS; at++) {
		char label[32];
		snprintf(label, sizeof label, "key-%d-%d", number, at);
		generate(own, CKM_AES_KEY_GEN, label, &yes);
		made[number / THREADS][number % THREADS]++;
		/* The first to come so far: every second process is killed under its own threads. */
		if (number / THREADS % 2 == 1 && at == KEYS / 2) kill(getpid(), SIGKILL);
	}
	return NULL;
}

static void crowd(void)
{
	pid_t children[PROCESSES];
	made = mmap(NULL, sizeof *made * PROCESSES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(made != MAP_FAILED);
	make_token();
	for (int at = 0; at < PROCESSES; at++) {
		children[at] = fork();
		if (children[at] == 0) {
			pthread_t threads[THREADS];
			OK(p11->C_Initialize(NULL));
			OK(p11->C_Login(open_session(), CKU_USER, user_pin, 4));
			for (intptr_t i = 0; i < THREADS; i++)
				pthread_create(&threads[i], NULL, make_keys, (void *)(at * THREADS + i));
			for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
			_exit(0);
		}
	}
	for (int at = 0; at < PROCESSES; at++) CHECK(ended(children[at]) == (at % 2 ? SIGKILL : 0));
	for (int number = 0; number < PROCESSES * THREADS; number++)
		for (int at = 0; at < made[number / THREADS][number % THREADS]; at++) printf("key-%d-%d\n", number, at);
}

enum { CROWD = 16, AT_ONCE = 8, ROUNDS = 8 };
static CK_OBJECT_HANDLE base;
static CK_ECDH1_DERIVE_PARAMS with_itself = {CKD_NULL, 0, NULL, 0, NULL};
/* Derivations that began and were completed, and answers that one is pending still. */
static _Atomic int acts, polls;

static void *derive_keys(void *argument)
{
	CK_SESSION_HANDLE own[AT_ONCE];
	CK_OBJECT_HANDLE derived;
	CK_MECHANISM agree = {CKM_ECDH1_DERIVE, &with_itself, sizeof with_itself};
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &secret, sizeof secret}, {CKA_KEY_TYPE, &generic, sizeof generic},
		{CKA_VALUE_LEN, &length, sizeof length},
	};
	(void)argument;
	for (int at = 0; at < AT_ONCE; at++)
		OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION | CKF_ASYNC_SESSION, NULL, NULL, &own[at]));
	for (int round = 0; round < ROUNDS; round++) {
		CK_RV rv[AT_ONCE];
		for (int at = 0; at < AT_ONCE; at++, acts++)
			rv[at] = p11->C_DeriveKey(own[at], &agree, base, template, 3, &derived);
		for (int at = 0; at < AT_ONCE; at++) {
			CK_ASYNC_DATA result;
			if (rv[at] == CKR_PENDING) {
				acts++;
				EXPECT(p11->C_AsyncComplete(own[at], (CK_UTF8CHAR *)"C_DeriveKey", NULL), CKR_ARGUMENTS_BAD);
				while ((rv[at] = p11->C_AsyncComplete(own[at], (CK_UTF8CHAR *)"C_DeriveKey", &result)) == CKR_PENDING)
					polls++;
			}
			OK(rv[at]);
		}
	}
	return NULL;
}

static void pending(void)
{
	CK_BYTE curve[] = {0x06, 0x03, 0x2b, 0x65, 0x6e}, point[40];
	CK_MECHANISM pair = {CKM_EC_MONTGOMERY_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, curve, sizeof curve}}, private[] = {{CKA_DERIVE, &yes, 1}};
	CK_ATTRIBUTE value = {CKA_EC_POINT, point, sizeof point};
	CK_OBJECT_HANDLE peer;
	pthread_t threads[CROWD];
	make_token();
	session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	OK(p11->C_GenerateKeyPair(session, &pair, public, 1, private, 1, &peer, &base));
	OK(p11->C_GetAttributeValue(session, peer, &value, 1));
	with_itself.ulPublicDataLen = value.ulValueLen;
	with_itself.pPublicData = point;
	for (int at = 0; at < CROWD; at++) pthread_create(&threads[at], NULL, derive_keys, NULL);
	for (int at = 0; at < CROWD; at++) pthread_join(threads[at], NULL);
	printf("%d %d\n", acts, polls);
}

/* A login, where nothing can be logged: the code that it answers is an argument. */
static void unlogged(const char *code)
{
	EXPECT(p11->C_Login(open_session(), CKU_USER, user_pin, 4), strtoul(code, NULL, 0));
}

#define say(path, ...) \
	do { \
		FILE *file_ = fopen(path, "w"); \
		CHECK(file_ != NULL && fprintf(file_, __VA_ARGS__) > 0 && fclose(file_) == 0); \
	} while (0)

/* A journal of the test's own, in a file system that no other process sees; prints what it was sent. */
static void journal(void)
{
	struct sockaddr_un address = {AF_UNIX, "/run/systemd/journal/socket"};
	char datagram[4096];
	ssize_t size;
	int own = socket(AF_UNIX, SOCK_DGRAM, 0);
	int user = getuid(), group = getgid();
	/* Who is not root may in a name space of users that is the process's own. */
	if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
		say("/proc/self/setgroups", "deny");
		say("/proc/self/uid_map", "%d %d 1", user, user);
		say("/proc/self/gid_map", "%d %d 1", group, group);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("none", "/run", "tmpfs", 0, NULL) != 0) {
		printf("not run: %s\n", strerror(errno));
		return;
	}
	CHECK(mkdir("/run/systemd", 0700) == 0 && mkdir("/run/systemd/journal", 0700) == 0);
	unlogged("0x6");
	CHECK(bind(own, (struct sockaddr *)&address, sizeof address) == 0);
	unlogged("0xe1");
	for (int at = 0; at < 2; at++) {
		size = recv(own, datagram, sizeof datagram, MSG_DONTWAIT);
		CHECK(size > 0);
		printf("%.*s", (int)size, datagram);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	/* As another user, who is the last argument. */
	if (argc == 4) CHECK(setgroups(0, NULL) == 0 && setgid(atoi(argv[3])) == 0 && setuid(atoi(argv[3])) == 0);
	load();
	OK(p11->C_Initialize(NULL));
	if (strcmp(argv[1], "events") == 0)
		events();
	else if (strcmp(argv[1], "crowd") == 0)
		crowd();
	else if (strcmp(argv[1], "pending") == 0)
		pending();
	else if (strcmp(argv[1], "journal") == 0)
		journal();
	else
		unlogged(argv[2]);
	OK(p11->C_Finalize(NULL));
	fflush(stdout);
	return 0;
}
