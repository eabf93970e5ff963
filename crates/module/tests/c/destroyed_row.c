/* SPDX-License-Identifier: Apache-2.0 */
/* An older copy of the token's files is put back while the end of an object waits for the writers' queue, and another process makes an object in
 * the same row, at the same version: that one stays. Argument: the token's file. */
#include "one_time.h"

static CK_OBJECT_HANDLE make(CK_SESSION_HANDLE session, const char *label, CK_BBOOL *private)
{
	CK_OBJECT_CLASS class = CKO_DATA;
	CK_OBJECT_HANDLE object;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}, {CKA_PRIVATE, private, 1},
				   {CKA_LABEL, (void *)label, 1}};
	OK(p11->C_CreateObject(session, template, 4, &object));
	return object;
}

/* Has the queue until the object is written. */
static void put_back(const char *token, CK_BBOOL *private, int ready)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char line[2048];
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	snprintf(line, sizeof(line), "%s.lock", token);
	int queue = open(line, O_RDWR);
	CHECK(queue >= 0 && fcntl(queue, F_SETLK, &whole) == 0 && write(ready, "", 1) == 1);
	sleep(1);
	/* Written over what is there, as `cp` does it. */
	snprintf(line, sizeof(line), "cp old/* $(dirname %s)", token);
	CHECK(system(line) == 0);
	make(session, "2", private);
	_exit(0);
}

int main(int argc, char **argv)
{
	char line[2048], byte;
	int ready[2];
	CHECK(argc == 2 && pipe(ready) == 0);
	begin_as_user();
	for (int private = 0; private < 2; private++) {
		OK(p11->C_Finalize(NULL));
		snprintf(line, sizeof(line), "rm -rf old && mkdir old && cp %s* old", argv[1]);
		CHECK(system(line) == 0);
		OK(p11->C_Initialize(NULL));
		CK_SESSION_HANDLE session = user_session();
		CK_OBJECT_HANDLE own = make(session, "1", private ? &yes : &no);
		pid_t child = fork();
		if (child == 0) put_back(argv[1], private ? &yes : &no, ready[1]);
		CHECK(read(ready[0], &byte, 1) == 1);
		EXPECT(p11->C_DestroyObject(session, own), CKR_OBJECT_HANDLE_INVALID);
		CHECK(ended(child) == 0);
		CHECK(find_labelled(session, CKO_DATA, "2") == own);
		OK(p11->C_DestroyObject(session, own));
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
