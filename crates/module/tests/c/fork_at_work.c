/* SPDX-License-Identifier: Apache-2.0 */
/* Forks at the worst moments: while C_Finalize waits for a thread that is inside a call, while threads search and
 * commit, in a signal handler that came into a call, and without the C library's knowledge. The child uses the token
 * as its own, or is refused and told why; the parent never notices. */
#include "common.h"
#include <sys/socket.h>

#define OBJECTS 1000

static CK_SESSION_HANDLE session;
static atomic_int over;

/* A data object on the token. */
static CK_RV make(CK_SESSION_HANDLE in, CK_ULONG length, CK_OBJECT_HANDLE *made)
{
	static CK_BYTE value[1 << 18];
	CK_OBJECT_CLASS class = CKO_DATA;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_TOKEN, &yes, 1},
		{CKA_PRIVATE, &yes, 1},		   {CKA_VALUE, value, length},
	};
	return p11->C_CreateObject(in, template, 4, made);
}

static CK_ULONG find_all(CK_SESSION_HANDLE in)
{
	CK_OBJECT_HANDLE found[512];
	CK_ULONG count = 0, sum = 0;
	OK(p11->C_FindObjectsInit(in, NULL, 0));
	do {
		OK(p11->C_FindObjects(in, found, 512, &count));
		sum += count;
	} while (count > 0);
	OK(p11->C_FindObjectsFinal(in));
	return sum;
}

static void *create_one(void *number)
{
	CK_OBJECT_HANDLE made;
	if (number != NULL) *(atomic_int *)number = (int)syscall(SYS_gettid);
	OK(make(session, 100, &made));
	return NULL;
}

/* Waits until a thread of this process is in the system call. */
static void wait_until_in(int thread, long call)
{
	char path[64], line[256];
	long now = -1;
	sprintf(path, "/proc/self/task/%d/syscall", thread);
	while (now != call) {
		FILE *file = fopen(path, "r");
		CHECK(file != NULL);
		if (fgets(line, sizeof line, file) == NULL || sscanf(line, "%ld", &now) != 1) now = -1;
		fclose(file);
	}
}

/* Another process that holds the writers' queue until it is let go: who writes waits inside a call. */
struct holder {
	pid_t process;
	int socket;
};

static struct holder hold_queue(void)
{
	int ends[2];
	char byte = 0, path[512];
	CK_OBJECT_HANDLE made;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	snprintf(path, sizeof path, "%s/.local/share/metaslot/token.db.lock", getenv("HOME"));
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	pid_t process = fork();
	if (process == 0) {
		int file = open(path, O_RDWR);
		close(ends[1]);
		CHECK(read(ends[0], &byte, 1) == 1);
		CHECK(file >= 0 && fcntl(file, F_SETLK, &lock) == 0);
		CHECK(write(ends[0], &byte, 1) == 1);
		_exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
	}
	close(ends[0]);
	/* The fork has closed the database; now it is open again. */
	OK(make(session, 100, &made));
	CHECK(find_all(session) > 0);
	CHECK(write(ends[1], &byte, 1) == 1 && read(ends[1], &byte, 1) == 1);
	return (struct holder){process, ends[1]};
}

static void let_go(struct holder *holder)
{
	CHECK(write(holder->socket, "", 1) == 1);
	CHECK(ended(holder->process) == 0);
	close(holder->socket);
}

/* A thread that waits inside a call. */
static pthread_t start_waiting(int *number)
{
	static atomic_int at;
	pthread_t thread;
	at = 0;
	CHECK(pthread_create(&thread, NULL, create_one, &at) == 0);
	while (at == 0) pause_ms(1);
	*number = at;
	/* It asks for the lock again and again. */
	wait_until_in(at, SYS_clock_nanosleep);
	return thread;
}

/* How many descriptors this process has on the database and its log. The one on the log's index is meant to be inherited: it
 * keeps the index in use, and no lock of the process is on it. */
static int inherited(void)
{
	char path[64], target[512];
	int count = 0;
	for (int at = 0; at < 256; at++) {
		sprintf(path, "/proc/self/fd/%d", at);
		ssize_t length = readlink(path, target, sizeof target - 1);
		if (length <= 0) continue;
		target[length] = 0;
		char *name = strstr(target, "/token.db");
		count += name != NULL && strcmp(name, "/token.db.lock") && strcmp(name, "/token.db.login")
			&& strcmp(name, "/token.db-shm");
	}
	return count;
}

static void child_that_writes(void)
{
	CHECK(inherited() == 0);
	CK_OBJECT_HANDLE made;
	OK(p11->C_Initialize(NULL));
	session = user_session();
	for (int i = 0; i < 20; i++) OK(make(session, 1000, &made));
	CHECK(find_all(session) >= 20);
	OK(p11->C_Finalize(NULL));
}

/* It inherited an open database, and must not touch it. */
static void child_that_is_refused(void)
{
	CK_INTERFACE *interface;
	CK_UTF8CHAR text[512];
	CK_ULONG length = sizeof text;
	CK_TOKEN_INFO info;
	CK_BYTE value[16] = {3};
	CHECK(inherited() > 0);
	OK(p11->C_Initialize(NULL));
	session = open_session();
	EXPECT(p11->C_GetTokenInfo(0, &info), CKR_DEVICE_ERROR);
	EXPECT(p11->C_Login(session, CKU_USER, user_pin, 4), CKR_DEVICE_ERROR);
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	OK(((METASLOT_FUNCTION_LIST *)interface->pFunctionList)->LastError(text, &length));
	CHECK(memmem(text, length, "token.db", 8) != NULL && memmem(text, length, "forked", 6) != NULL);
	/* What needs no database works. */
	import_key(session, CKK_AES, value, 16);
	check_works(session);
	OK(p11->C_Finalize(NULL));
	/* That one began with nothing open, so its own child has nothing either, but what it inherited itself. */
	OK(p11->C_Initialize(NULL));
	EXPECT(p11->C_GetTokenInfo(0, &info), CKR_DEVICE_ERROR);
}

static pid_t start(pid_t child, void (*what)(void))
{
	CHECK(child >= 0);
	if (child > 0) return child;
	alarm(60);
	what();
	fflush(stdout);
	_exit(0);
}

static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int parent_has_begun_anew[2];

static void child_that_writes_later(void)
{
	char byte;
	CHECK(read(parent_has_begun_anew[0], &byte, 1) == 1);
	child_that_writes();
}

static void *finalize(void *unused)
{
	OK(p11->C_Finalize(NULL));
	return unused;
}

static void log_in(void)
{
	OK(p11->C_Initialize(NULL));
	session = user_session();
}

static void while_finalize_waits(void)
{
	CK_INFO info;
	pthread_t ending;
	int number;
	struct holder holder = hold_queue();
	pthread_t waiting = start_waiting(&number);
	CHECK(pthread_create(&ending, NULL, finalize, NULL) == 0);
	while (p11->C_GetInfo(&info) != CKR_CRYPTOKI_NOT_INITIALIZED) pause_ms(1);
	CHECK(pipe(parent_has_begun_anew) == 0);
	pid_t one = start(fork(), child_that_writes), other = start(fork(), child_that_writes_later);
	let_go(&holder);
	CHECK(ended(one) == 0);
	CHECK(pthread_join(waiting, NULL) == 0 && pthread_join(ending, NULL) == 0);
	log_in();
	CHECK(write(parent_has_begun_anew[1], "", 1) == 1);
	CHECK(ended(other) == 0);
	close(parent_has_begun_anew[0]);
	close(parent_has_begun_anew[1]);
}

static void *search(void *unused)
{
	CK_SESSION_HANDLE own = open_session();
	while (!over) CHECK(find_all(own) >= OBJECTS);
	return unused;
}

static void *commit(void *unused)
{
	CK_SESSION_HANDLE own = open_session();
	CK_OBJECT_HANDLE made;
	while (!over) {
		OK(make(own, 1 << 18, &made));
		OK(p11->C_DestroyObject(own, made));
	}
	return unused;
}

static void while_threads_work(void)
{
	pthread_t threads[4];
	over = 0;
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, i % 2 ? search : commit, NULL) == 0);
	for (int round = 0; round < 5; round++)
		CHECK(ended(start(fork(), child_that_writes)) == 0);
	over = 1;
	for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static atomic_int handled;

static void fork_here(int signal)
{
	(void)signal;
	handled = start(fork(), child_that_is_refused);
}

static void in_a_signal_handler(void)
{
	int number;
	struct holder holder = hold_queue();
	struct sigaction action = {.sa_handler = fork_here};
	pthread_t waiting = start_waiting(&number);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	handled = 0;
	CHECK(pthread_kill(waiting, SIGUSR1) == 0);
	while (handled == 0) pause_ms(1);
	CHECK(ended(handled) == 0);
	let_go(&holder);
	CHECK(pthread_join(waiting, NULL) == 0);
}

int main(void)
{
	CK_OBJECT_HANDLE made;
	alarm(240);
	session = begin_as_user();
	for (int i = 0; i < 5; i++) while_finalize_waits();
	in_a_signal_handler();
	CHECK(find_all(session) > 0);
	CHECK(ended(start(raw_fork(), child_that_is_refused)) == 0);
	for (int i = 0; i < OBJECTS; i++) OK(make(session, 1, &made));
	while_threads_work();
	OK(make(session, 100, &made));
	OK(p11->C_Finalize(NULL));
	/* Nothing is open now, so nothing is inherited, no matter who forks. */
	CHECK(ended(start(raw_fork(), child_that_writes)) == 0);
	return 0;
}
