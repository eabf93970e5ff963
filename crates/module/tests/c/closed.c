/* SPDX-License-Identifier: Apache-2.0 */
/* A host closes descriptors that are not its own, and has files of its own by their numbers. Those are left alone, and what was acknowledged
 * is there afterwards. */
#include "common.h"
#include <sys/stat.h>

#define FILES 60
#define LENGTH 200

enum { REUSED, FORKED_AND_REUSED, CLOSED, SCENES };

static CK_RV create(CK_SESSION_HANDLE session)
{
	CK_OBJECT_CLASS class = CKO_DATA;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}};
	CK_OBJECT_HANDLE object;
	return p11->C_CreateObject(session, template, 2, &object);
}

static CK_ULONG objects(CK_SESSION_HANDLE session)
{
	CK_OBJECT_HANDLE found[200];
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, NULL, 0));
	OK(p11->C_FindObjects(session, found, 200, &count));
	OK(p11->C_FindObjectsFinal(session));
	return count;
}

static CK_SESSION_HANDLE log_in(void)
{
	CK_SESSION_HANDLE session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	return session;
}

static struct flock first_byte(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	return lock;
}

/* Files of the host, locked. */
static void open_files(int files[FILES])
{
	char content[LENGTH], name[32];
	memset(content, 'h', LENGTH);
	for (int at = 0; at < FILES; at++) {
		struct flock lock = first_byte();
		snprintf(name, sizeof(name), "of-the-host-%d", at);
		files[at] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		CHECK(files[at] == 3 + at);
		CHECK(write(files[at], content, LENGTH) == LENGTH);
		CHECK(fcntl(files[at], F_SETLK, &lock) == 0);
	}
}

static void check_files(int files[FILES])
{
	char content[LENGTH + 1];
	for (int at = 0; at < FILES; at++) {
		CHECK(pread(files[at], content, LENGTH + 1, 0) == LENGTH);
		for (int byte = 0; byte < LENGTH; byte++) CHECK(content[byte] == 'h');
	}
	pid_t child = fork();
	for (int at = 0; child == 0 && at < FILES; at++) {
		struct flock lock = first_byte();
		if (fcntl(files[at], F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) _exit(1);
	}
	if (child == 0) _exit(0);
	CHECK(ended(child) == 0);
}

/* How many objects were acknowledged after the host's mischief. */
static int play(int scene)
{
	int files[FILES], made = 0;
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = log_in();
	OK(create(session));
	objects(session);
	if (scene == FORKED_AND_REUSED) {
		pid_t child = fork();
		if (child == 0) _exit(0);
		CHECK(ended(child) == 0);
	}
	for (int number = 3; number < 256; number++) close(number);
	if (scene != CLOSED) open_files(files);
	for (int at = 0; at < 3; at++) made += create(session) == CKR_OK;
	/* SQLite would go on by the numbers that it knows. */
	CHECK(scene == REUSED ? made == 0 : made > 0);
	if (scene != CLOSED) check_files(files);
	OK(p11->C_Finalize(NULL));
	if (scene != CLOSED) check_files(files);
	return made;
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	OK(p11->C_Finalize(NULL));
	CK_ULONG expected = 0;
	for (int scene = 0; scene < SCENES; scene++) {
		pid_t child = fork();
		if (child == 0) _exit(100 + play(scene));
		int status = ended(child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) >= 100);
		printf("scene %d: %d made\n", scene, WEXITSTATUS(status) - 100);
		expected += 1 + (CK_ULONG)(WEXITSTATUS(status) - 100);
		OK(p11->C_Initialize(NULL));
		CHECK(objects(log_in()) == expected);
		OK(p11->C_Finalize(NULL));
	}
	return 0;
}
