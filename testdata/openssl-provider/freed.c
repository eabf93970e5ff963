// SPDX-License-Identifier: Apache-2.0
// What the provider and the module free has nothing of a message: the end of a part that is no whole block, and what a digest has of its last block.

#define _GNU_SOURCE
#include <malloc.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void __libc_free(void *);
extern void *__libc_malloc(size_t);

static const char *watching;
static int found;

void free(void *block)
{
	if (block && watching && memmem(block, malloc_usable_size(block), "so secret", 9)) {
		fprintf(stderr, "%s: a freed block of %zu\n", watching, malloc_usable_size(block));
		found = 1;
	}
	__libc_free(block);
}

void *realloc(void *block, size_t size)
{
	void *larger = __libc_malloc(size);
	size_t length = block ? malloc_usable_size(block) : 0;
	if (larger)
		memcpy(larger, block, length < size ? length : size);
	if (larger)
		free(block);
	return larger;
}

static unsigned char message[3007], out[3100];

static void cipher(const char *name)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, name, "provider=metaslot");
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();
	unsigned char key[32] = { 1 }, iv[16] = { 2 };
	int part;
	watching = name;
	found |= !EVP_CipherInit_ex2(context, ours, key, iv, 1, NULL);
	found |= !EVP_CipherUpdate(context, out, &part, message, sizeof message) || !EVP_CIPHER_CTX_copy(copy, context);
	EVP_CIPHER_CTX_free(context);
	EVP_CIPHER_CTX_free(copy);
	EVP_CIPHER_free(ours);
}

static void digest(const char *name)
{
	EVP_MD *ours = EVP_MD_fetch(NULL, name, "provider=metaslot");
	EVP_MD_CTX *context = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();
	watching = name;
	found |= !EVP_DigestInit_ex2(context, ours, NULL) || !EVP_DigestUpdate(context, message, sizeof message);
	found |= !EVP_MD_CTX_copy_ex(copy, context) || !EVP_DigestUpdate(copy, message, 1) || !EVP_DigestFinal_ex(copy, out, NULL);
	EVP_MD_CTX_free(context);
	EVP_MD_CTX_free(copy);
	EVP_MD_free(ours);
}

int main(void)
{
	memcpy(message + sizeof message - 10, "so secret", 9);
	cipher("AES-128-CBC");
	cipher("AES-256-CTR");
	digest("SHA256");
	digest("SHA512");
	digest("SHA3-256");
	watching = NULL;
	return found;
}
