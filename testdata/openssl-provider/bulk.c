// SPDX-License-Identifier: Apache-2.0
// What the module does in mode `all`, beside OpenSSL's own in the same process: every algorithm that both have, with random inputs that are cut at random
// places, copies in the middle, contexts that are used again, and mistakes. The argument says which operations.

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
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

// ---- ciphers

static unsigned char one[ROOM + 64], other[ROOM + 64], back[ROOM + 64];

struct message {
	const EVP_CIPHER *cipher;
	unsigned char key[64], iv[16], aad[300], tag[16];
	int iv_length, aad_length, tag_length, pads, mode;
};

// The parameters of a message, in one call or in several.
static int start(EVP_CIPHER_CTX *context, const struct message *m, int forward, int again)
{
	int aead = EVP_CIPHER_get_flags(m->cipher) & EVP_CIPH_FLAG_AEAD_CIPHER;
	if (!again && aead) {
		CHECK(EVP_CipherInit_ex2(context, m->cipher, NULL, NULL, forward, NULL));
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, m->iv_length, NULL) > 0);
		if (m->mode == EVP_CIPH_CCM_MODE)
			CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, m->tag_length,
				forward ? NULL : (void *)m->tag) > 0);
	}
	// To name the cipher again would make all of it anew.
	const EVP_CIPHER *cipher = again || aead ? NULL : m->cipher;
	if (chance(2)) {
		CHECK(EVP_CipherInit_ex2(context, cipher, m->key, m->iv, forward, NULL));
	} else {
		if (!again || chance(2))
			CHECK(EVP_CipherInit_ex2(context, cipher, m->key, NULL, forward, NULL));
		CHECK(EVP_CipherInit_ex2(context, NULL, NULL, m->iv, forward, NULL));
	}
	if (again && m->mode == EVP_CIPH_CCM_MODE && !forward)
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, m->tag_length, (void *)m->tag) > 0);
	if (!aead)
		CHECK(EVP_CIPHER_CTX_set_padding(context, m->pads));
	return aead;
}

// A message in parts; how much came out, -1 where it is refused.
static int pass(EVP_CIPHER_CTX *context, const struct message *m, int forward, const unsigned char *in, int length,
	unsigned char *out, int again, EVP_CIPHER_CTX **copied, int *copied_at)
{
	int aead = start(context, m, forward, again), done = 0, part, taken = 0, in_place = chance(3) == 0 && !copied;
	int whole = m->mode == EVP_CIPH_CCM_MODE || m->mode == EVP_CIPH_XTS_MODE || chance(3) == 0;
	int tag_first = chance(2), copy_at = copied ? (int)chance(length + 1) : -1;
	if (aead && !forward && tag_first && m->mode != EVP_CIPH_CCM_MODE)
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, m->tag_length, (void *)m->tag) > 0);
	if (m->mode == EVP_CIPH_CCM_MODE)
		CHECK(EVP_CipherUpdate(context, NULL, &part, NULL, length));
	if (aead && m->aad_length > 0) {
		int first = m->mode == EVP_CIPH_CCM_MODE ? m->aad_length : (int)chance(m->aad_length + 1);
		if (first > 0)
			CHECK(EVP_CipherUpdate(context, NULL, &part, m->aad, first));
		if (first < m->aad_length)
			CHECK(EVP_CipherUpdate(context, NULL, &part, m->aad + first, m->aad_length - first));
	}
	if (in_place)
		memcpy(out, in, length);
	while (taken < length) {
		int now = whole ? length : (int)chance(chance(3) ? 40 : length) + 1;
		if (now > length - taken)
			now = length - taken;
		// What is written in place never comes before what is read.
		const unsigned char *from = in + taken;
		if (in_place && done == taken)
			from = out + taken;
		if (!EVP_CipherUpdate(context, out + done, &part, from, now))
			return -1;
		done += part;
		taken += now;
		if (in_place && done != taken)
			in_place = 0;
		if (copied && !*copied && taken >= copy_at) {
			*copied = EVP_CIPHER_CTX_new();
			if (!EVP_CIPHER_CTX_copy(*copied, context)) {
				// OpenSSL 3.0 copies none that authenticate; ours none that is long.
				EVP_CIPHER_CTX_free(*copied);
				*copied = NULL;
				copy_at = length + 1;
				ERR_clear_error();
			}
			copied_at[0] = taken;
			copied_at[1] = done;
		}
	}
	if (aead && !forward && !tag_first && m->mode != EVP_CIPH_CCM_MODE)
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, m->tag_length, (void *)m->tag) > 0);
	if (!EVP_CipherFinal_ex(context, out + done, &part))
		return -1;
	return done + part;
}

static void cipher(const char *name)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, name, OURS), *theirs = EVP_CIPHER_fetch(NULL, name, THEIRS);
	struct message m;
	with = name;
	CHECK(ours && theirs);
	CHECK(EVP_CIPHER_get_mode(ours) == EVP_CIPHER_get_mode(theirs));
	CHECK(EVP_CIPHER_get_flags(ours) == EVP_CIPHER_get_flags(theirs));
	CHECK(EVP_CIPHER_get_nid(ours) == EVP_CIPHER_get_nid(theirs));
	CHECK(EVP_CIPHER_get_block_size(ours) == EVP_CIPHER_get_block_size(theirs));
	CHECK(EVP_CIPHER_get_key_length(ours) == EVP_CIPHER_get_key_length(theirs));
	CHECK(EVP_CIPHER_get_iv_length(ours) == EVP_CIPHER_get_iv_length(theirs));
	int aead = EVP_CIPHER_get_flags(theirs) & EVP_CIPH_FLAG_AEAD_CIPHER, block = EVP_CIPHER_get_block_size(theirs);
	EVP_CIPHER_CTX *mine = EVP_CIPHER_CTX_new(), *context = EVP_CIPHER_CTX_new(), *reader = EVP_CIPHER_CTX_new();
	memset(&m, 0, sizeof m);
	m.mode = EVP_CIPHER_get_mode(theirs);
	for (int round = 0; round < 60; round++) {
		int again = round % 4 != 0, length = (int)some_length(), at[2] = { 0, 0 };
		EVP_CIPHER_CTX *copied = NULL;
		fill(input, length);
		if (!again) {
			EVP_CIPHER_CTX_reset(mine);
			EVP_CIPHER_CTX_reset(context);
			EVP_CIPHER_CTX_reset(reader);
			fill(m.key, sizeof m.key);
			m.iv_length = EVP_CIPHER_get_iv_length(theirs);
			if (m.mode == EVP_CIPH_GCM_MODE && chance(3) == 0)
				m.iv_length = 1 + (int)chance(16);
			if (m.mode == EVP_CIPH_CCM_MODE)
				m.iv_length = 7 + (int)chance(7);
			m.tag_length = m.mode == EVP_CIPH_CCM_MODE ? 8 + 2 * (int)chance(5) : 16;
		}
		fill(m.iv, sizeof m.iv);
		m.aad_length = (int)chance(sizeof m.aad);
		fill(m.aad, sizeof m.aad);
		m.pads = (int)chance(2);
		if (block > 1 && !m.pads)
			length -= length % block;
		if (m.mode == EVP_CIPH_XTS_MODE && length < 16)
			length = 16;
		// OpenSSL's own has no tag of nothing by CCM.
		if (m.mode == EVP_CIPH_CCM_MODE && length == 0)
			length = 1;
		if (m.mode == EVP_CIPH_CCM_MODE && 15 - m.iv_length < 3 && length > 65535)
			length = 65535;
		m.cipher = theirs;
		int expected = pass(context, &m, 1, input, length, one, again, NULL, NULL);
		CHECK(expected >= length);
		m.cipher = ours;
		int made = pass(mine, &m, 1, input, length, other, again, chance(2) ? &copied : NULL, at);
		CHECK(made == expected && !memcmp(one, other, made));
		if (aead) {
			unsigned char tag[16];
			CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, m.tag_length, m.tag) > 0);
			CHECK(EVP_CIPHER_CTX_ctrl(mine, EVP_CTRL_AEAD_GET_TAG, m.tag_length, tag) > 0);
			CHECK(!memcmp(tag, m.tag, m.tag_length));
		}
		if (copied) {
			int part = 0, end = 0;
			memcpy(back, one, made);
			if (at[0] < length)
				CHECK(EVP_CipherUpdate(copied, back + at[1], &part, input + at[0], length - at[0]));
			CHECK(EVP_CipherFinal_ex(copied, back + at[1] + part, &end));
			CHECK(at[1] + part + end == made && !memcmp(one, back, made));
			EVP_CIPHER_CTX_free(copied);
		}
		int got = pass(reader, &m, 0, one, made, back, again, NULL, NULL);
		CHECK(got == length && !memcmp(back, input, length));
		// Wrong ones are refused, by both.
		if (aead && round % 4 == 1) {
			struct message wrong = m;
			EVP_CIPHER_CTX *fresh = EVP_CIPHER_CTX_new();
			if (m.aad_length > 0 && chance(2))
				wrong.aad[chance(m.aad_length)] ^= 1;
			else
				wrong.tag[chance(m.tag_length)] ^= 1;
			CHECK(pass(fresh, &wrong, 0, one, made, back, 0, NULL, NULL) == -1);
			ERR_clear_error();
			CHECK(pass(fresh, &m, 0, one, made, back, 0, NULL, NULL) == length && !memcmp(back, input, length));
			EVP_CIPHER_CTX_free(fresh);
		}
		if (block > 1 && m.pads && round % 4 == 2) {
			m.pads = 0;
			CHECK(pass(reader, &m, 0, one, made - 1, back, 1, NULL, NULL) == -1);
			ERR_clear_error();
		}
	}
	// A child goes on with its parent's keys, and has its own.
	m.pads = 1;
	int length = 1000, made;
	fill(input, length);
	m.cipher = theirs;
	CHECK((made = pass(context, &m, 1, input, length, one, 1, NULL, NULL)) >= length);
	if (aead)
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, m.tag_length, m.tag) > 0);
	m.cipher = ours;
	pid_t child = fork();
	if (child == 0) {
		int right = pass(mine, &m, 1, input, length, other, 1, NULL, NULL) == made && !memcmp(one, other, made);
		right &= pass(reader, &m, 0, one, made, back, 1, NULL, NULL) == length && !memcmp(back, input, length);
		EVP_CIPHER_CTX_free(mine);
		_exit(!right);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(pass(mine, &m, 1, input, length, other, 1, NULL, NULL) == made && !memcmp(one, other, made));
	EVP_CIPHER_CTX_free(mine);
	EVP_CIPHER_CTX_free(context);
	EVP_CIPHER_CTX_free(reader);
	EVP_CIPHER_free(ours);
	EVP_CIPHER_free(theirs);
}

// Another direction or key in the middle of a message: its end says nothing then, and no part comes out under the old key.
static void changed_in_the_middle(const char *name, int length, int with_another_key)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, name, OURS);
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	unsigned char key[64] = { 1 }, another[64] = { 2 }, iv[16] = { 0 };
	int part;
	with = name;
	CHECK(EVP_CipherInit_ex2(context, ours, key, iv, 1, NULL));
	CHECK(EVP_CipherUpdate(context, one, &part, input, length) && EVP_CipherUpdate(context, one, &part, input, length % 1000));
	CHECK(EVP_CipherInit_ex2(context, NULL, with_another_key ? another : key, NULL, with_another_key, NULL));
	if (!with_another_key)
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, input) > 0);
	CHECK(!EVP_CipherUpdate(context, one, &part, input, 100) && !EVP_CipherFinal_ex(context, one, &part));
	ERR_clear_error();
	CHECK(EVP_CipherInit_ex2(context, NULL, NULL, iv, 1, NULL) && EVP_CipherUpdate(context, one, &part, input, length));
	EVP_CIPHER_CTX_free(context);
	EVP_CIPHER_free(ours);
}

// There is a tag when it has been made, and of CCM as long as was said.
static void tag_before_its_time(const char *name)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, name, OURS);
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	unsigned char key[64] = { 1 }, iv[16] = { 0 }, tag[16];
	int part, ccm = EVP_CIPHER_get_mode(ours) == EVP_CIPH_CCM_MODE;
	with = name;
	for (int round = 0; round < 2; round++) {
		CHECK(EVP_CipherInit_ex2(context, round ? NULL : ours, key, iv, 1, NULL));
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, ccm ? 12 : 16, tag) <= 0);
		CHECK(EVP_CipherUpdate(context, one, &part, input, 100));
		CHECK(ccm || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) <= 0);
		CHECK(EVP_CipherFinal_ex(context, one, &part));
		CHECK(!ccm || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) <= 0);
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 17, tag) <= 0);
		ERR_clear_error();
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, ccm ? 12 : 16, tag) > 0);
	}
	EVP_CIPHER_CTX_free(context);
	EVP_CIPHER_free(ours);
}

// Each message has the IV after the last one's, as sshd has them made: whatever begins it, both directions, and where only a part of it is fixed.
static void ivs_are_counted(const char *name)
{
	EVP_CIPHER *ciphers[] = { EVP_CIPHER_fetch(NULL, name, OURS), EVP_CIPHER_fetch(NULL, name, THEIRS) };
	unsigned char key[16] = { 1 }, first[12] = { 2 }, ivs[2][12], *outs[] = { one, other };
	EVP_CIPHER_CTX *contexts[2];
	int part;
	with = name;
	memset(first + 6, 0xff, 6);
	for (int forward = 0; forward < 2; forward++) {
		for (int i = 0; i < 2; i++) {
			contexts[i] = EVP_CIPHER_CTX_new();
			CHECK(EVP_CipherInit_ex2(contexts[i], ciphers[i], key, NULL, forward, NULL));
			CHECK(EVP_CIPHER_CTX_ctrl(contexts[i], EVP_CTRL_GCM_IV_GEN, 12, ivs[i]) <= 0);
			CHECK(EVP_CIPHER_CTX_ctrl(contexts[i], EVP_CTRL_GCM_SET_IV_FIXED, -1, first) > 0);
		}
		ERR_clear_error();
		for (int round = 0; round < 6; round++) {
			for (int i = 0; i < 2; i++) {
				CHECK(EVP_CIPHER_CTX_ctrl(contexts[i], EVP_CTRL_GCM_IV_GEN, 12, ivs[i]) > 0);
				CHECK(EVP_CipherUpdate(contexts[i], outs[i], &part, input, 100));
				CHECK(!forward || EVP_CipherFinal_ex(contexts[i], outs[i] + part, &part));
			}
			CHECK(!memcmp(ivs[0], ivs[1], 12) && !memcmp(one, other, 100));
		}
		EVP_CIPHER_CTX_free(contexts[0]);
		EVP_CIPHER_CTX_free(contexts[1]);
	}
	contexts[0] = EVP_CIPHER_CTX_new();
	CHECK(EVP_CipherInit_ex2(contexts[0], ciphers[0], key, NULL, 1, NULL));
	CHECK(EVP_CIPHER_CTX_ctrl(contexts[0], EVP_CTRL_GCM_SET_IV_FIXED, 4, first) > 0);
	for (int round = 0; round < 2; round++) {
		CHECK(EVP_CIPHER_CTX_ctrl(contexts[0], EVP_CTRL_GCM_IV_GEN, 8, ivs[round]) > 0);
		CHECK(EVP_CipherUpdate(contexts[0], outs[round], &part, input, 100));
		CHECK(EVP_CipherFinal_ex(contexts[0], outs[round] + part, &part));
	}
	CHECK(memcmp(ivs[0], ivs[1], 8) && memcmp(one, other, 100));
	// Of another length it has no fixed part.
	CHECK(EVP_CIPHER_CTX_ctrl(contexts[0], EVP_CTRL_AEAD_SET_IVLEN, 16, NULL) > 0);
	CHECK(EVP_CIPHER_CTX_ctrl(contexts[0], EVP_CTRL_GCM_IV_GEN, 8, ivs[0]) <= 0);
	ERR_clear_error();
	EVP_CIPHER_CTX_free(contexts[0]);
	EVP_CIPHER_free(ciphers[0]);
	EVP_CIPHER_free(ciphers[1]);
}

// The tag that is set last counts, whenever it is set.
static void another_tag(const char *name)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, name, OURS);
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	unsigned char key[32] = { 1 }, iv[12] = { 0 }, tag[16];
	int part;
	with = name;
	CHECK(EVP_CipherInit_ex2(context, ours, key, iv, 1, NULL) && EVP_CipherUpdate(context, one, &part, input, 100));
	CHECK(EVP_CipherFinal_ex(context, one, &part) && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) > 0);
	for (int wrong = 0; wrong < 2; wrong++) {
		CHECK(EVP_CipherInit_ex2(context, NULL, NULL, iv, 0, NULL));
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) > 0);
		CHECK(EVP_CipherUpdate(context, other, &part, one, 100) && !memcmp(other, input, 100));
		tag[15] ^= wrong;
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) > 0);
		CHECK(EVP_CipherFinal_ex(context, other, &part) == !wrong);
	}
	ERR_clear_error();
	EVP_CIPHER_CTX_free(context);
	EVP_CIPHER_free(ours);
}

// XTS has no sector that is meant where none is said.
static void without_an_iv(const char *name)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, name, OURS);
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	unsigned char key[64] = { 1 }, iv[16] = { 0 };
	int part;
	with = name;
	CHECK(EVP_CipherInit_ex2(context, ours, key, NULL, 1, NULL));
	CHECK(!EVP_CipherUpdate(context, one, &part, input, 100) && EVP_Cipher(context, one, input, 64) <= 0);
	ERR_clear_error();
	CHECK(EVP_CipherInit_ex2(context, NULL, NULL, iv, 1, NULL) && EVP_CipherUpdate(context, one, &part, input, 100));
	EVP_CIPHER_CTX_free(context);
	EVP_CIPHER_free(ours);
}

// After the largest counter comes zero.
static void counter_wraps(const char *name, int to_it)
{
	EVP_CIPHER *ciphers[] = { EVP_CIPHER_fetch(NULL, name, OURS), EVP_CIPHER_fetch(NULL, name, THEIRS) };
	unsigned char key[32] = { 1 }, iv[16], *outs[] = { one, other };
	with = name;
	memset(iv, 0xff, sizeof iv);
	iv[15] -= (unsigned char)to_it;
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
		int part, end;
		CHECK(EVP_CipherInit_ex2(context, ciphers[i], key, iv, 1, NULL));
		CHECK(EVP_CipherUpdate(context, outs[i], &part, input, 20 + to_it * 8));
		CHECK(EVP_CipherUpdate(context, outs[i] + part, &end, input, 4000));
		EVP_CIPHER_CTX_free(context);
		EVP_CIPHER_free(ciphers[i]);
	}
	CHECK(!memcmp(one, other, 4020 + to_it * 8));
}

// What is told in the middle of a message, where a part of a block is left over, and that another message begins anew there.
static void registers(const char *name, int forward)
{
	EVP_CIPHER *ciphers[] = { EVP_CIPHER_fetch(NULL, name, OURS), EVP_CIPHER_fetch(NULL, name, THEIRS) };
	EVP_CIPHER_CTX *contexts[] = { EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new() };
	unsigned char key[32] = { 1 }, iv[16] = { 2 }, said[2][16], *outs[] = { one, other };
	with = name;
	for (int i = 0; i < 2; i++)
		CHECK(EVP_CipherInit_ex2(contexts[i], ciphers[i], key, iv, forward, NULL));
	for (int round = 0; round < 400; round++) {
		int length = (int)chance(round % 8 ? 20 : 200), part;
		for (int i = 0; i < 2; i++) {
			CHECK(EVP_CipherUpdate(contexts[i], outs[i], &part, input + round, length) && part == length);
			CHECK(EVP_CIPHER_CTX_get_updated_iv(contexts[i], said[i], 16));
			if (round % 50 == 49)
				CHECK(EVP_CipherInit_ex2(contexts[i], NULL, NULL, round % 100 == 99 ? NULL : iv, forward, NULL));
		}
		CHECK(!memcmp(one, other, length) && !memcmp(said[0], said[1], 16));
		CHECK(EVP_CIPHER_CTX_get_num(contexts[0]) == EVP_CIPHER_CTX_get_num(contexts[1]));
	}
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX_free(contexts[i]);
		EVP_CIPHER_free(ciphers[i]);
	}
}

// Keys that are wrapped and unwrapped, in their place too; lengths that are none, and what is asked of a message first.
static void wraps(const char *name)
{
	EVP_CIPHER *ciphers[] = { EVP_CIPHER_fetch(NULL, name, OURS), EVP_CIPHER_fetch(NULL, name, THEIRS) };
	EVP_CIPHER_CTX *contexts[2];
	unsigned char key[32], iv[8], *outs[] = { one, other };
	int pads = strstr(name, "PAD") != NULL;
	with = name;
	CHECK(ciphers[0] && ciphers[1]);
	CHECK(EVP_CIPHER_get_mode(ciphers[0]) == EVP_CIPHER_get_mode(ciphers[1]));
	CHECK(EVP_CIPHER_get_flags(ciphers[0]) == EVP_CIPHER_get_flags(ciphers[1]));
	CHECK(EVP_CIPHER_get_nid(ciphers[0]) == EVP_CIPHER_get_nid(ciphers[1]));
	CHECK(EVP_CIPHER_get_block_size(ciphers[0]) == EVP_CIPHER_get_block_size(ciphers[1]));
	CHECK(EVP_CIPHER_get_iv_length(ciphers[0]) == EVP_CIPHER_get_iv_length(ciphers[1]));
	for (int i = 0; i < 2; i++) {
		contexts[i] = EVP_CIPHER_CTX_new();
		EVP_CIPHER_CTX_set_flags(contexts[i], EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	}
	for (int round = 0; round < 400; round++) {
		int length = (int)chance(round % 3 ? 12 : 80) * (round % 4 ? 8 : 1), forward = round % 2, own_iv = (int)chance(3) == 0;
		int places[2], asked[2], parts[2] = { 0, 0 }, ends[2] = { 0, 0 };
		fill(key, sizeof key);
		fill(iv, sizeof iv);
		fill(input, length);
		if (!forward && length >= 24 && chance(4)) {
			// One that was wrapped, and now and then another.
			CHECK(EVP_CipherInit_ex2(contexts[1], ciphers[1], key, own_iv ? iv : NULL, 1, NULL));
			CHECK(length % 8 || EVP_CipherUpdate(contexts[1], back, places, input, length - 8 - (pads ? (int)chance(8) : 0)));
			if (length % 8 == 0)
				memcpy(input, back, length);
			input[chance(length)] ^= chance(4) == 0;
		}
		for (int i = 0; i < 2; i++) {
			CHECK(EVP_CIPHER_CTX_reset(contexts[i]));
			EVP_CIPHER_CTX_set_flags(contexts[i], EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
			CHECK(EVP_CipherInit_ex2(contexts[i], ciphers[i], key, own_iv ? iv : NULL, forward, NULL));
			parts[i] = -1;
			asked[i] = EVP_CipherUpdate(contexts[i], NULL, &parts[i], input, length) ? parts[i] : -1;
			memcpy(outs[i], input, length);
			parts[i] = -1;
			places[i] = EVP_CipherUpdate(contexts[i], outs[i], &parts[i], round % 5 ? input : outs[i], length) ? parts[i] : -1;
			CHECK(EVP_CipherFinal_ex(contexts[i], back, &ends[i]) && ends[i] == 0);
		}
		ERR_clear_error();
		CHECK(places[0] == places[1] && (places[0] <= 0 || !memcmp(one, other, places[0])));
		CHECK(asked[0] == asked[1]);
	}
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX_free(contexts[i]);
		EVP_CIPHER_free(ciphers[i]);
	}
}

// Padding may be switched off until the end, and no number of bytes is answered but a counter's.
static void padding_at_the_end(const char *name)
{
	EVP_CIPHER *ciphers[] = { EVP_CIPHER_fetch(NULL, name, OURS), EVP_CIPHER_fetch(NULL, name, THEIRS) };
	unsigned char key[32] = { 1 }, iv[16] = { 2 }, *outs[] = { one, other };
	with = name;
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
		int part, end;
		CHECK(EVP_CipherInit_ex2(context, ciphers[i], key, iv, 0, NULL));
		CHECK(EVP_CipherUpdate(context, outs[i], &part, input, 64) && part == 48);
		CHECK(EVP_CIPHER_CTX_get_num(context) == 0 && EVP_CIPHER_CTX_set_padding(context, 0));
		CHECK(EVP_CipherFinal_ex(context, outs[i] + part, &end) && end == 16);
		EVP_CIPHER_CTX_free(context);
		EVP_CIPHER_free(ciphers[i]);
	}
	CHECK(!memcmp(one, other, 64));
}

static void ciphers(void)
{
	static const char *const names[] = { "AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "AES-128-CCM", "AES-256-CCM",
		"ChaCha20-Poly1305", "AES-128-CBC", "AES-192-CBC", "AES-256-CBC", "AES-128-CTR", "AES-192-CTR", "AES-256-CTR",
		"AES-128-ECB", "AES-192-ECB", "AES-256-ECB", "AES-128-XTS", "AES-256-XTS", "AES-128-CFB", "AES-192-CFB",
		"AES-256-CFB", "AES-128-CFB8", "AES-192-CFB8", "AES-256-CFB8", "AES-128-CFB1", "AES-192-CFB1", "AES-256-CFB1", "AES-128-OFB", "AES-192-OFB", "AES-256-OFB" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		cipher(names[i]);
	for (size_t i = 0; i < 6; i += i == 0 ? 5 : 1) {
		for (int length = 100; length < 40000; length += 30000) {
			changed_in_the_middle(names[i], length, 0);
			changed_in_the_middle(names[i], length, 1);
		}
	}
	tag_before_its_time("AES-256-GCM");
	tag_before_its_time("AES-256-CCM");
	tag_before_its_time("ChaCha20-Poly1305");
	ivs_are_counted("AES-128-GCM");
	another_tag("AES-256-GCM");
	another_tag("ChaCha20-Poly1305");
	without_an_iv("AES-128-XTS");
	for (int to_it = 0; to_it < 100; to_it += 33)
		counter_wraps("AES-256-CTR", to_it);
	for (int forward = 0; forward < 2; forward++) {
		registers("AES-128-CTR", forward);
		registers("AES-192-CFB", forward);
		registers("AES-256-CFB8", forward);
		registers("AES-128-CFB1", forward);
		registers("AES-256-OFB", forward);
	}
	wraps("AES-128-WRAP");
	wraps("AES-256-WRAP");
	wraps("AES-128-WRAP-PAD");
	wraps("AES-192-WRAP-PAD");
	padding_at_the_end("AES-128-CBC");
	padding_at_the_end("AES-256-ECB");
}

// ---- message authentication codes

static size_t mac_of(EVP_MAC *mac, OSSL_PARAM *params, const unsigned char *key, size_t key_length, size_t length,
	unsigned char *out, int parts)
{
	EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac), *copy = NULL;
	size_t done = 0, got = 0, copied_at = 0;
	CHECK(context);
	if (chance(2)) {
		CHECK(EVP_MAC_init(context, key, key_length, params));
	} else {
		CHECK(EVP_MAC_CTX_set_params(context, params) && EVP_MAC_init(context, key, key_length, NULL));
	}
	for (int round = 0; round < 2; round++) {
		for (done = 0; done < length;) {
			size_t part = parts ? chance(length) + 1 : length;
			if (part > length - done)
				part = length - done;
			CHECK(EVP_MAC_update(context, input + done, part));
			done += part;
			if (parts && round == 0 && (!copy || chance(2))) {
				EVP_MAC_CTX_free(copy);
				CHECK((copy = EVP_MAC_CTX_dup(context)) != NULL);
				copied_at = done;
			}
		}
		CHECK(EVP_MAC_final(context, out, &got, 64) && got == EVP_MAC_CTX_get_mac_size(context));
		// The same again, with the key that it has; GMAC has an IV for each.
		if (EVP_MAC_init(context, NULL, 0, params) != 1 || !parts)
			break;
	}
	if (copy) {
		unsigned char other[64];
		CHECK(EVP_MAC_update(copy, input + copied_at, length - copied_at));
		CHECK(EVP_MAC_final(copy, other, &got, sizeof other) && !memcmp(out, other, got));
		EVP_MAC_CTX_free(copy);
	}
	EVP_MAC_CTX_free(context);
	ERR_clear_error();
	return got;
}

static void mac(const char *name, const char *kind, const char *beneath, size_t key_length)
{
	EVP_MAC *ours = EVP_MAC_fetch(NULL, name, OURS), *theirs = EVP_MAC_fetch(NULL, name, THEIRS);
	unsigned char key[200], iv[12], a[64], b[64];
	with = beneath;
	CHECK(ours && theirs);
	for (int round = 0; round < 20; round++) {
		size_t length = round % 8 == 7 ? 200000 : some_length(), used = key_length ? key_length : 1 + chance(sizeof key);
		fill(input, length);
		fill(key, sizeof key);
		fill(iv, sizeof iv);
		OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(kind, (char *)beneath, 0), OSSL_PARAM_END, OSSL_PARAM_END };
		if (!strcmp(name, "GMAC"))
			params[1] = OSSL_PARAM_construct_octet_string("iv", iv, sizeof iv);
		size_t expected = mac_of(theirs, params, key, used, length, b, 0);
		CHECK(mac_of(ours, params, key, used, length, a, round % 2) == expected && !memcmp(a, b, expected));
	}
	EVP_MAC_free(ours);
	EVP_MAC_free(theirs);
}

// Two messages under one IV would give the key of GMAC away.
static void one_iv_for_two(void)
{
	EVP_MAC *ours = EVP_MAC_fetch(NULL, "GMAC", OURS);
	EVP_MAC_CTX *context = EVP_MAC_CTX_new(ours);
	unsigned char key[16] = { 1 }, iv[12] = { 2 }, out[16];
	size_t length;
	OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string("iv", iv, sizeof iv),
		OSSL_PARAM_construct_utf8_string("cipher", "AES-128-GCM", 0), OSSL_PARAM_END };
	CHECK(EVP_MAC_init(context, key, sizeof key, params) && EVP_MAC_update(context, input, 100));
	CHECK(EVP_MAC_final(context, out, &length, sizeof out));
	CHECK(!EVP_MAC_init(context, key, sizeof key, NULL) || !EVP_MAC_update(context, input, 50)
		|| !EVP_MAC_final(context, out, &length, sizeof out));
	ERR_clear_error();
	CHECK(EVP_MAC_init(context, NULL, 0, params) && EVP_MAC_update(context, input, 100));
	CHECK(EVP_MAC_final(context, out, &length, sizeof out));
	EVP_MAC_CTX_free(context);
	EVP_MAC_free(ours);
}

// After a key that is none nothing is authenticated by the one before.
static void no_old_key(void)
{
	EVP_MAC *ours = EVP_MAC_fetch(NULL, "CMAC", OURS);
	EVP_MAC_CTX *context = EVP_MAC_CTX_new(ours);
	unsigned char key[32] = { 1 }, out[16];
	size_t length;
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("cipher", "AES-128-CBC", 0), OSSL_PARAM_END };
	CHECK(EVP_MAC_init(context, key, 16, params) && !EVP_MAC_init(context, key, 32, NULL));
	CHECK(!EVP_MAC_update(context, input, 100) || !EVP_MAC_final(context, out, &length, sizeof out));
	ERR_clear_error();
	EVP_MAC_CTX_free(context);
	EVP_MAC_free(ours);
}

static void macs(void)
{
	static const char *const hashes[] = { "SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "SHA512-256", "SHA3-256", "SHA3-512" };
	for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
		mac("HMAC", "digest", hashes[i], 0);
	mac("CMAC", "cipher", "AES-128-CBC", 16);
	mac("CMAC", "cipher", "AES-256-CBC", 32);
	mac("GMAC", "cipher", "AES-128-GCM", 16);
	mac("GMAC", "cipher", "AES-256-GCM", 32);
	one_iv_for_two();
	no_old_key();
}

// ---- key derivation

static int derived(const char *name, const char *properties, const OSSL_PARAM *params, unsigned char *out, size_t length)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, name, properties);
	CHECK(kdf);
	EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf), *copy = NULL;
	CHECK(context && EVP_KDF_CTX_set_params(context, params));
	if (chance(2)) {
		copy = EVP_KDF_CTX_dup(context);
		CHECK(copy || strcmp(properties, OURS));
		ERR_clear_error();
	}
	int done = EVP_KDF_derive(copy ? copy : context, out, length, NULL);
	if (done <= 0)
		fprintf(stderr, "%s by %s\n", name, properties);
	EVP_KDF_CTX_free(copy);
	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return done;
}

static void same(const char *name, const OSSL_PARAM *params, size_t length)
{
	static unsigned char a[20000], b[20000];
	CHECK(derived(name, THEIRS, params, b, length) == 1);
	CHECK(derived(name, OURS, params, a, length) == 1);
	CHECK(!memcmp(a, b, length));
}

// The least that SP 800-132 allows, where a program wants it watched.
static void lower_bounds(void)
{
	static const struct {
		unsigned int iterations;
		size_t salt, length;
	} cases[] = { { 1000, 16, 14 }, { 999, 16, 14 }, { 1000, 15, 14 }, { 1000, 16, 13 }, { 1, 1, 1 } };
	unsigned char pass[8] = { 1 }, salt[16] = { 2 }, out[14];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int free = 0; free < 2; free++) {
			EVP_KDF *kdf = EVP_KDF_fetch(NULL, "PBKDF2", OURS);
			EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
			unsigned int iterations = cases[i].iterations;
			OSSL_PARAM params[] = { OSSL_PARAM_construct_int("pkcs5", &free),
				OSSL_PARAM_construct_octet_string("pass", pass, sizeof pass),
				OSSL_PARAM_construct_octet_string("salt", salt, cases[i].salt),
				OSSL_PARAM_construct_uint("iter", &iterations), OSSL_PARAM_END };
			CHECK((EVP_KDF_derive(context, out, cases[i].length, params) > 0) == (free || i == 0));
			ERR_clear_error();
			EVP_KDF_CTX_free(context);
			EVP_KDF_free(kdf);
		}
	}
}

// Parts of the information are added to what a context has, before it derives and after; then it begins anew.
static void information_is_added(void)
{
	unsigned char key[32], salt[20], info[60], made[64];
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "HKDF", NULL);
	with = "HKDF by EVP_PKEY_CTX";
	fill(key, sizeof key);
	fill(salt, sizeof salt);
	fill(info, sizeof info);
	for (int round = 0; round < 3; round++) {
		CHECK(EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1);
		CHECK(EVP_PKEY_CTX_set1_hkdf_salt(context, salt, sizeof salt) == 1);
		CHECK(EVP_PKEY_CTX_set1_hkdf_key(context, key, sizeof key) == 1);
		for (int length = 0; length < 60; length += 20) {
			size_t size = sizeof made;
			CHECK(EVP_PKEY_CTX_add1_hkdf_info(context, info + length, 20) == 1);
			if (length == 0 && round == 0)
				continue;
			CHECK(EVP_PKEY_derive(context, made, &size) == 1);
			OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", "SHA256", 0),
				OSSL_PARAM_construct_octet_string("key", key, sizeof key),
				OSSL_PARAM_construct_octet_string("salt", salt, sizeof salt),
				OSSL_PARAM_construct_octet_string("info", info, (size_t)length + 20), OSSL_PARAM_END };
			CHECK(derived("HKDF", THEIRS, params, one, sizeof made) == 1 && !memcmp(one, made, sizeof made));
		}
	}
	EVP_PKEY_CTX_free(context);
}

static void kdfs(void)
{
	static const struct {
		const char *name;
		size_t length;
	} hashes[] = { { "SHA256", 32 }, { "SHA384", 48 }, { "SHA512", 64 }, { "SHA1", 20 } };
	unsigned char key[100], salt[100], info[100], more[100];
	for (int round = 0; round < 60; round++) {
		size_t which = chance(4), digest = hashes[which].length, key_length = digest, length = digest;
		int mode = round % 3;
		with = hashes[which].name;
		fill(key, sizeof key);
		fill(salt, sizeof salt);
		fill(info, sizeof info);
		fill(more, sizeof more);
		if (mode != 2)
			key_length = 16 + chance(80);
		if (mode != 1)
			length = 1 + chance(500);
		OSSL_PARAM hkdf[] = { OSSL_PARAM_construct_utf8_string("digest", (char *)with, 0),
			OSSL_PARAM_construct_int("mode", &mode), OSSL_PARAM_construct_octet_string("key", key, key_length),
			OSSL_PARAM_construct_octet_string("salt", salt, chance(3) ? chance(sizeof salt) : 0),
			OSSL_PARAM_construct_octet_string("info", info, 1 + chance(90)),
			OSSL_PARAM_construct_octet_string("info", more, 1 + chance(90)), OSSL_PARAM_END };
		same("HKDF", hkdf, length);
		if (mode == 0 || which == 3)
			continue;
		if (mode == 2)
			length = 1 + chance(60);
		OSSL_PARAM tls[] = { hkdf[0], hkdf[1], OSSL_PARAM_construct_octet_string("key", key, digest),
			OSSL_PARAM_construct_octet_string("prefix", "tls13 ", 6), OSSL_PARAM_construct_octet_string("label", "derived", 7),
			mode == 1 ? OSSL_PARAM_construct_octet_string("salt", salt, digest)
				  : OSSL_PARAM_construct_octet_string("data", info, digest),
			OSSL_PARAM_END };
		same("TLS13-KDF", tls, length);
		if (mode == 1 && chance(2)) {
			// The first secret of a handshake.
			OSSL_PARAM first[] = { hkdf[0], hkdf[1], tls[3], tls[4], OSSL_PARAM_END };
			same("TLS13-KDF", first, length);
		}
	}
	for (int round = 0; round < 20; round++) {
		unsigned int iterations = 1000 + (unsigned int)chance(2000);
		OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", (char *)hashes[chance(4)].name, 0),
			OSSL_PARAM_construct_octet_string("pass", key, 8 + chance(80)),
			OSSL_PARAM_construct_octet_string("salt", salt, 16 + chance(80)),
			OSSL_PARAM_construct_uint("iter", &iterations), OSSL_PARAM_END };
		same("PBKDF2", params, 1 + chance(100));
	}
	lower_bounds();
	information_is_added();
	static const char *const others[] = { "MD5", "SHA3-256", "SHA3-512", "SHA256" };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", (char *)others[i], 0),
			OSSL_PARAM_construct_octet_string("pass", key, chance(80)), OSSL_PARAM_construct_octet_string("salt", salt, chance(80)),
			OSSL_PARAM_construct_uint("iter", &(unsigned int) { i == 3 ? 1 : 100 }), OSSL_PARAM_END };
		with = others[i];
		same("PBKDF2", params, i == 3 ? 20000 : 100);
	}
	// A password may be all of a file.
	OSSL_PARAM file[] = { OSSL_PARAM_construct_octet_string("pass", input, 200000),
		OSSL_PARAM_construct_octet_string("salt", salt, 16), OSSL_PARAM_END };
	same("PBKDF2", file, 100);
	static const char *const modes[] = { "EXTRACT_AND_EXPAND", "extract_only", "Expand_Only" };
	for (size_t i = 0; i < 9; i++) {
		OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", "SHA256", 0),
			OSSL_PARAM_construct_utf8_string("mode", (char *)modes[i % 3], 0), OSSL_PARAM_construct_octet_string("key", key, i < 3 ? 32 : 0),
			OSSL_PARAM_construct_octet_string("salt", salt, i < 6 ? 20 : 0), OSSL_PARAM_construct_octet_string("info", info, 7),
			OSSL_PARAM_END };
		same("HKDF", params, 32);
	}
	// scrypt is made of a long one.
	uint64_t n = 16;
	uint32_t r = 8, p = 16;
	OSSL_PARAM scrypt[] = { OSSL_PARAM_construct_octet_string("pass", key, 8), OSSL_PARAM_construct_octet_string("salt", salt, 8),
		OSSL_PARAM_construct_uint64("n", &n), OSSL_PARAM_construct_uint32("r", &r), OSSL_PARAM_construct_uint32("p", &p),
		OSSL_PARAM_END };
	CHECK(derived("SCRYPT", THEIRS, scrypt, input, 64) == 1);
}

// ---- random bytes

static void randoms(void)
{
	unsigned char a[64] = { 0 }, b[64] = { 0 }, zero[64] = { 0 };
	EVP_RAND *ours = EVP_RAND_fetch(NULL, "METASLOT-RAND", OURS);
	EVP_RAND_CTX *context = EVP_RAND_CTX_new(ours, NULL);
	CHECK(ours && context && EVP_RAND_get_state(context) == EVP_RAND_STATE_UNINITIALISED);
	CHECK(!EVP_RAND_generate(context, a, sizeof a, 128, 0, NULL, 0) && !EVP_RAND_instantiate(context, 257, 0, NULL, 0, NULL));
	ERR_clear_error();
	CHECK(EVP_RAND_instantiate(context, 128, 0, NULL, 0, NULL) && !EVP_RAND_generate(context, a, sizeof a, 257, 0, NULL, 0));
	ERR_clear_error();
	CHECK(EVP_RAND_get_state(context) == EVP_RAND_STATE_READY && EVP_RAND_get_strength(context) >= 128);
	CHECK(EVP_RAND_generate(context, a, sizeof a, 128, 0, NULL, 0));
	CHECK(EVP_RAND_generate(context, b, sizeof b, 128, 1, b, 4));
	CHECK(memcmp(a, b, sizeof a) && memcmp(a, zero, sizeof a));
	CHECK(EVP_RAND_uninstantiate(context) && !EVP_RAND_generate(context, a, sizeof a, 128, 0, NULL, 0));
	ERR_clear_error();
	EVP_RAND_CTX_free(context);
	EVP_RAND_free(ours);
	// What the program is configured to take.
	const char *taken = EVP_RAND_get0_name(EVP_RAND_CTX_get0_rand(RAND_get0_public(NULL)));
	CHECK(!strcmp(taken, "METASLOT-RAND"));
	CHECK(RAND_bytes(a, sizeof a) == 1 && RAND_priv_bytes(b, sizeof b) == 1 && memcmp(a, b, sizeof a));
	pid_t child = fork();
	if (child == 0)
		_exit(RAND_bytes(b, sizeof b) != 1 || !memcmp(a, b, sizeof a));
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	for (size_t length = 1; length < ROOM; length *= 7)
		CHECK(RAND_bytes(input, (int)length) == 1);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} operations[] = { { "digests", digests }, { "ciphers", ciphers }, { "macs", macs }, { "kdfs", kdfs }, { "random", randoms } };
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
