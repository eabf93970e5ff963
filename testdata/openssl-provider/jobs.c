// SPDX-License-Identifier: Apache-2.0
// A program with OpenSSL's asynchronous jobs on one thread, and keys in a token: `jobs WHAT URI`. WHAT is `sign` (64 jobs at a time, which an
// event loop resumes as their descriptors become readable; every signature is checked), `abandon` (jobs that are begun, whose wait contexts are
// freed, and which never come back), `fork` (jobs that a child resumes as well), `full` (no descriptor can be made), `block` (no job may pause), `lose`
// (all sessions of the module are closed while jobs pause), `edge` (two signatures in each job, by an event loop that is told of a descriptor once, edge-triggered). It prints how many jobs paused. The stack of a job is as small as OpenSSL makes it, and a page that may not be touched lies below.
#include <dlfcn.h>
#include <openssl/async.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/store.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 64, ROUNDS = 4, ABANDONED = 1500, STACK = 32768, PAGE = 4096, PAINT = 0x5a, STACKS = 4096 };

static unsigned char *stacks[STACKS];
static int stack_count;

static void *allocate(size_t size, const char *file, int line) {
    (void)file, (void)line;
    if (size != STACK || stack_count == STACKS)
        return malloc(size);
    unsigned char *all = mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all, PAGE, PROT_NONE) != 0)
        abort();
    memset(all + PAGE, PAINT, STACK);
    return stacks[stack_count++] = all + PAGE;
}

static int is_stack(const void *place) {
    for (int i = 0; i < stack_count; i++)
        if (stacks[i] == place)
            return 1;
    return 0;
}

static void *reallocate(void *place, size_t size, const char *file, int line) {
    (void)file, (void)line;
    return realloc(place, size);
}

// Stacks stay, to be looked at.
static void release(void *place, const char *file, int line) {
    (void)file, (void)line;
    if (!is_stack(place))
        free(place);
}

static size_t deepest(void) {
    size_t most = 0;
    for (int i = 0; i < stack_count; i++) {
        size_t untouched = 0;
        while (untouched < STACK && stacks[i][untouched] == PAINT)
            untouched++;
        if (STACK - untouched > most)
            most = STACK - untouched;
    }
    return most;
}

static EVP_PKEY *key;

static int blocks, edges;

static EVP_PKEY *load(const char *uri) {
    OSSL_STORE_CTX *store = OSSL_STORE_open(uri, NULL, NULL, NULL, NULL);
    EVP_PKEY *found = NULL;
    while (store != NULL && found == NULL && !OSSL_STORE_eof(store)) {
        OSSL_STORE_INFO *info = OSSL_STORE_load(store);
        if (info == NULL)
            break;
        if (OSSL_STORE_INFO_get_type(info) == OSSL_STORE_INFO_PKEY)
            found = OSSL_STORE_INFO_get1_PKEY(info);
        OSSL_STORE_INFO_free(info);
    }
    OSSL_STORE_close(store);
    return found;
}

static int signs(int number) {
    unsigned char signature[1024], message[100];
    size_t length = sizeof signature;
    memset(message, number, sizeof message);
    EVP_MD_CTX *sign = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    int good = EVP_DigestSignInit(sign, NULL, EVP_sha256(), NULL, key) == 1
        && EVP_DigestSign(sign, signature, &length, message, sizeof message) == 1
        && EVP_DigestVerifyInit(verify, NULL, EVP_sha256(), NULL, key) == 1
        && EVP_DigestVerify(verify, signature, length, message, sizeof message) == 1;
    EVP_MD_CTX_free(sign);
    EVP_MD_CTX_free(verify);
    return good;
}

static int work(void *given) {
    if (blocks)
        ASYNC_block_pause();
    int good = signs(*(const int *)given) && (!edges || signs(*(const int *)given + 1));
    if (blocks)
        ASYNC_unblock_pause();
    if (!good)
        ERR_print_errors_fp(stderr);
    return good;
}

struct job {
    ASYNC_JOB *job;
    ASYNC_WAIT_CTX *context;
    int over, fd, added;
};

static long pauses, bad;

// Starts or resumes one.
static void run(struct job *job, int number) {
    int good = 0;
    switch (ASYNC_start_job(&job->job, job->context, &good, work, &number, sizeof number)) {
    case ASYNC_PAUSE: {
        OSSL_ASYNC_FD fd[2];
        size_t count = 0;
        if (!ASYNC_WAIT_CTX_get_all_fds(job->context, NULL, &count) || count != 1) {
            fprintf(stderr, "%zu descriptors of a job that pauses\n", count);
            bad++;
        } else {
            ASYNC_WAIT_CTX_get_all_fds(job->context, fd, &count);
            job->fd = fd[0];
        }
        pauses++;
        break;
    }
    case ASYNC_FINISH: {
        size_t added = 0, deleted = 0;
        ASYNC_WAIT_CTX_get_changed_fds(job->context, NULL, &added, NULL, &deleted);
        if (added != 0 || deleted != 0) {
            fprintf(stderr, "a descriptor came or went without a pause\n");
            bad++;
        }
        bad += !good;
        job->over = 1;
        break;
    }
    default:
        fprintf(stderr, "a job could not be started\n");
        bad++;
        job->over = 1;
    }
}

static void begin(struct job *jobs) {
    for (int i = 0; i < JOBS; i++) {
        jobs[i].over = 0;
        run(&jobs[i], i);
    }
}

// Until none is left.
static void resume(struct job *jobs) {
    for (;;) {
        struct pollfd polled[JOBS];
        int index[JOBS], count = 0;
        for (int i = 0; i < JOBS; i++)
            if (!jobs[i].over) {
                polled[count] = (struct pollfd){ .fd = jobs[i].fd, .events = POLLIN };
                index[count++] = i;
            }
        if (count == 0)
            return;
        if (poll(polled, count, 10000) <= 0) {
            fprintf(stderr, "no descriptor is readable\n");
            exit(97);
        }
        for (int i = 0; i < count; i++)
            if (polled[i].revents & POLLIN)
                run(&jobs[index[i]], index[i]);
    }
}

// The same by edges: a descriptor is added once, and what it tells is told once.
static void resume_by_edges(struct job *jobs, int epoll) {
    int left = 0;
    for (int i = 0; i < JOBS; i++) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = i };
        left += !jobs[i].over;
        if (!jobs[i].over && !jobs[i].added && epoll_ctl(epoll, EPOLL_CTL_ADD, jobs[i].fd, &event) != 0)
            exit(95);
        jobs[i].added |= !jobs[i].over;
    }
    while (left > 0) {
        struct epoll_event events[JOBS];
        int count = epoll_wait(epoll, events, JOBS, 10000);
        if (count <= 0) {
            fprintf(stderr, "no descriptor became readable, %d jobs are left\n", left);
            exit(94);
        }
        for (int i = 0; i < count; i++) {
            struct job *job = &jobs[events[i].data.u32];
            if (!job->over) {
                run(job, events[i].data.u32);
                left -= job->over;
            }
        }
    }
}

static void abandon(void) {
    for (int i = 0; i < ABANDONED; i++) {
        struct job job = { .context = ASYNC_WAIT_CTX_new() };
        run(&job, i);
        ASYNC_WAIT_CTX_free(job.context);
    }
}

// Another part of the program closes all sessions.
static void lose(void) {
    void *module = dlopen(getenv("METASLOT_MODULE"), RTLD_NOW);
    if (module == NULL)
        exit(96);
    unsigned long (*slots)(unsigned char, unsigned long *, unsigned long *);
    unsigned long (*close_all)(unsigned long);
    *(void **)&slots = dlsym(module, "C_GetSlotList");
    *(void **)&close_all = dlsym(module, "C_CloseAllSessions");
    unsigned long found[8], count = 8;
    bad += slots(1, found, &count) != 0;
    for (unsigned long i = 0; i < count; i++)
        bad += close_all(found[i]) != 0;
}

int main(int argc, char **argv) {
    if (argc != 3 || CRYPTO_set_mem_functions(allocate, reallocate, release) != 1)
        return 99;
    const char *what = argv[1];
    key = load(argv[2]);
    if (key == NULL || ASYNC_init_thread(0, 0) != 1 || !signs(1)) {
        ERR_print_errors_fp(stderr);
        return 98;
    }
    static struct job jobs[JOBS];
    for (int i = 0; i < JOBS; i++)
        jobs[i].context = ASYNC_WAIT_CTX_new();
    if (strcmp(what, "full") == 0) {
        struct rlimit limit = { 0, 0 };
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = dup(0);
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (strcmp(what, "abandon") == 0)
        abandon();
    blocks = strcmp(what, "block") == 0;
    edges = strcmp(what, "edge") == 0;
    int epoll = edges ? epoll_create1(EPOLL_CLOEXEC) : -1;
    for (int i = 0; i < ROUNDS; i++) {
        begin(jobs);
        if (strcmp(what, "lose") == 0)
            lose();
        if (strcmp(what, "fork") == 0) {
            pid_t child = fork();
            if (child == 0) {
                resume(jobs);
                _exit(bad != 0);
            }
            resume(jobs);
            int status = -1;
            waitpid(child, &status, 0);
            bad += status != 0;
        } else if (edges) {
            resume_by_edges(jobs, epoll);
        } else {
            resume(jobs);
        }
    }
    for (int i = 0; i < JOBS; i++)
        ASYNC_WAIT_CTX_free(jobs[i].context);
    printf("%ld pauses, stacks %zu bytes deep\n", pauses, deepest());
    return bad != 0;
}
