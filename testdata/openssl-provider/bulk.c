// SPDX-License-Identifier: Apache-2.0
// What the module does in mode `all`, beside OpenSSL's own in the same process: every algorithm that both have, with random inputs that are cut at random
// places, copies in the middle, contexts that are used again, and mistakes. The argument says which operations.

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS "provider=metaslot"
#define THEIRS "provider=default"
#define ROOM (256 * 1024)

static const char *doing = "", *with = "";

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s %s, line %d: %s\n", doing, with, __LINE__, #condition); \
			ERR_print_errors_fp(stderr); \
			exit(1); \
		} \
	} while (0)

static uint64_t seed = 88172645463325252ULL;

static size_t chance(size_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below == 0 ? 0 : (size_t)(seed % below);
}

static void fill(unsigned char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		at[i] = (unsigned char)chance(256);
}

// Lengths that matter: near blocks, near what is kept, and long ones.
static size_t some_length(void)
{
	static const size_t near[] = { 0, 1, 15, 16, 17, 63, 64, 65, 2047, 2048, 2049, 4096, 20000 };
	switch (chance(4)) {
	case 0:
		return near[chance(sizeof near / sizeof *near)];
	case 1:
		return chance(70000);
	default:
		return chance(600);
	}
}

static unsigned char input[ROOM];

// ---- digests

static void digest_parts(EVP_MD_CTX *context, const unsigned char *at, size_t length)
{
	while (length > 0) {
		size_t part = chance(4) == 0 ? chance(length) + 1 : chance(length < 500 ? length : 500) + 1;
		CHECK(EVP_DigestUpdate(context, at, part));
		at += part;
		length -= part;
	}
}

static void digest(const char *name)
{
	EVP_MD *ours = EVP_MD_fetch(NULL, name, OURS), *theirs = EVP_MD_fetch(NULL, name, THEIRS);
	unsigned char a[EVP_MAX_MD_SIZE], b[EVP_MAX_MD_SIZE];
	unsigned int a_length, b_length;
	with = name;
	CHECK(ours && theirs);
	CHECK(EVP_MD_get_size(ours) == EVP_MD_get_size(theirs));
	CHECK(EVP_MD_get_block_size(ours) == EVP_MD_get_block_size(theirs));
	CHECK(EVP_MD_get_flags(ours) == EVP_MD_get_flags(theirs));
	CHECK(EVP_MD_get_type(ours) == EVP_MD_get_type(theirs));
	EVP_MD_CTX *context = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();
	for (int round = 0; round < 60; round++) {
		size_t length = some_length(), at = chance(length + 1);
		fill(input, length);
		CHECK(EVP_Digest(input, length, b, &b_length, theirs, NULL));
		CHECK(EVP_Digest(input, length, a, &a_length, ours, NULL));
		CHECK(a_length == b_length && !memcmp(a, b, a_length));
		// In parts, with a copy in the middle that ends otherwise.
		CHECK(EVP_DigestInit_ex2(context, ours, NULL));
		digest_parts(context, input, at);
		CHECK(EVP_MD_CTX_copy_ex(copy, context));
		digest_parts(context, input + at, length - at);
		CHECK(EVP_DigestFinal_ex(context, a, &a_length) && !memcmp(a, b, a_length));
		if (chance(2)) {
			EVP_MD_CTX *second = EVP_MD_CTX_new();
			CHECK(EVP_MD_CTX_copy_ex(second, copy));
			CHECK(EVP_DigestFinal_ex(second, a, NULL) && EVP_Digest(input, at, b, NULL, theirs, NULL));
			CHECK(!memcmp(a, b, a_length));
			EVP_MD_CTX_free(second);
		}
		digest_parts(copy, input, at);
		CHECK(EVP_DigestFinal_ex(copy, a, NULL));
		memmove(input + at, input, at);
		CHECK(EVP_Digest(input, 2 * at, b, NULL, theirs, NULL) && !memcmp(a, b, a_length));
		// One that is given up, and one that is begun anew.
		CHECK(EVP_DigestInit_ex2(context, ours, NULL));
		digest_parts(context, input, chance(10000));
		if (chance(2))
			EVP_MD_CTX_reset(context);
	}
	// A child ends what its parent began while that is short, and no process is harmed by a longer one.
	for (size_t length = 100; length < 10000; length += 9000) {
		CHECK(EVP_DigestInit_ex2(context, ours, NULL) && EVP_DigestUpdate(context, input, length));
		pid_t child = fork();
		if (child == 0) {
			int done = EVP_DigestFinal_ex(context, a, NULL), wrong = length == 100 && !done;
			EVP_Digest(input, length, b, NULL, theirs, NULL);
			wrong |= done && memcmp(a, b, a_length);
			wrong |= !EVP_Digest(input, 77, a, NULL, ours, NULL) || !EVP_Digest(input, 77, b, NULL, theirs, NULL);
			EVP_MD_CTX_free(context);
			_exit(wrong || memcmp(a, b, a_length));
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		CHECK(EVP_Digest(input, length, b, NULL, theirs, NULL));
		CHECK(EVP_DigestFinal_ex(context, a, NULL) && !memcmp(a, b, a_length));
	}
	EVP_MD_CTX_free(context);
	EVP_MD_CTX_free(copy);
	EVP_MD_free(ours);
	EVP_MD_free(theirs);
}

static void digests(void)
{
	static const char *const names[] = { "SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "SHA512-224", "SHA512-256",
		"SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		digest(names[i]);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} operations[] = { { "digests", digests } };
	const char *ours = EVP_MD_get0_name(EVP_sha256());
	CHECK(ours != NULL);
	for (int place = 1; place < count; place++) {
		doing = arguments[place];
		for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
			if (!strcmp(doing, operations[i].name))
				operations[i].run();
	}
	CHECK(ERR_peek_error() == 0);
	return 0;
}
