/* SPDX-License-Identifier: Apache-2.0 */
/* A token is moved away and restored from a copy while two calls wait for the writers' queue: what they have read of their keys is another
 * token's by then. Arguments: the token's file, and that of the copy. */
#include "one_time.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE keys[2], secret;

static void copy(METASLOT_FUNCTION_LIST *metaslot, CK_BBOOL restore, const char *path)
{
	METASLOT_EXAMINED examined;
	OK(metaslot->CopyToken(0, CKU_USER, user_pin, 4, (CK_UTF8CHAR *)path, strlen(path), restore, NULL, NULL, &examined));
}

static METASLOT_FUNCTION_LIST *ours(void)
{
	CK_INTERFACE *interface;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	return interface->pFunctionList;
}

/* Has the queue of the token that goes, and makes another. */
static void replace(const char *path, const char *from, int ready)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[512];
	snprintf(name, sizeof(name), "%s.lock", path);
	int queue = open(name, O_RDWR);
	CHECK(queue >= 0 && fcntl(queue, F_SETLK, &whole) == 0 && write(ready, "", 1) == 1);
	sleep(1);
	snprintf(name, sizeof(name), "mkdir lost && mv %s* lost", path);
	CHECK(system(name) == 0);
	OK(p11->C_Initialize(NULL));
	copy(ours(), CK_TRUE, from);
	_exit(0);
}

static void *seal(void *nothing)
{
	CK_BYTE iv[12] = {0}, tag[16], sealed[8];
	CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
	CK_GCM_MESSAGE_PARAMS gcm = {iv, sizeof(iv), 32, CKG_GENERATE_COUNTER, tag, 128};
	CK_SESSION_HANDLE other = open_session();
	CK_ULONG length = sizeof(sealed);
	OK(p11->C_MessageEncryptInit(other, &mechanism, secret));
	EXPECT(p11->C_EncryptMessage(other, &gcm, sizeof(gcm), NULL, 0, sealed, sizeof(sealed), sealed, &length),
	       CKR_MECHANISM_PARAM_INVALID);
	return nothing;
}

int main(int argc, char **argv)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG tree = 5, chain = 4, bytes = 32, length;
	CK_ATTRIBUTE template[] = {{CKA_TOKEN, &yes, 1}, {CKA_VALUE_LEN, &bytes, sizeof(bytes)}};
	CK_BYTE signature[8000];
	pthread_t thread;
	int ready[2];
	CHECK(argc == 3 && pipe(ready) == 0);
	session = begin_as_user();
	OK(make_one_time(session, "key", 1, &tree, &chain, keys));
	OK(p11->C_GenerateKey(session, &generate, template, 2, &secret));
	length = sizeof(signature);
	OK(sign_once(session, keys[1], "first", 5, signature, &length));
	copy(ours(), CK_FALSE, argv[2]);
	pid_t child = fork();
	if (child == 0) replace(argv[1], argv[2], ready[1]);
	CHECK(read(ready[0], signature, 1) == 1);
	CHECK(pthread_create(&thread, NULL, seal, NULL) == 0);
	length = sizeof(signature);
	EXPECT(sign_once(session, keys[1], "second", 6, signature, &length), CKR_KEY_FUNCTION_NOT_PERMITTED);
	CHECK(pthread_join(thread, NULL) == 0 && ended(child) == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
