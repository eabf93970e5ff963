/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the load share. */
#ifndef LOAD_H
#define LOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <metaslot/pkcs11.h>

#define MOST_KEYS 16
#define PEERS 8
/* Longest result that is kept of each operation: a signature with ML-DSA-65. */
#define MOST_KEPT 3309
/* What is kept of a ciphertext: its end. */
#define TAIL 16
/* One verification in so many is of a changed signature. */
#define BAD_EVERY 16

enum kind { SIGN, VERIFY, DERIVE, ENCRYPT, DECRYPT, DIGEST };
enum family { RSA, EC, EDWARDS, MONTGOMERY, LATTICE, SECRET, KEYLESS };

/* One operation of the standard, as it is called and as it is checked. */
struct operation {
	const char *name;
	enum kind kind;
	CK_MECHANISM_TYPE mechanism;
	enum family family;
	CK_ULONG number;	/* RSA: bits; a lattice: the parameter set; a secret key: bytes */
	CK_KEY_TYPE type;	/* a secret key's */
	const char *detail;	/* OpenSSL's name of the curve, the digest or the cipher */
	CK_ULONG message;	/* bytes */
};

/* A key on both sides. */
struct key {
	CK_OBJECT_HANDLE public, private;
	void *openssl;
	CK_BYTE secret[32];
	CK_BYTE shared[PEERS][80];
};

/* work.c: the module. */
extern CK_FUNCTION_LIST_3_2 *p11;
extern const struct operation *operation;
extern struct key keys[MOST_KEYS];
extern CK_ULONG kept; /* bytes kept of each result */

/* Room for one operation in flight. */
struct slot {
	CK_SESSION_HANDLE session;
	struct key *key;
	CK_BYTE *room, *message, *output;
	CK_BYTE signature[MOST_KEPT];	/* VERIFY: a good one of the message */
	CK_ULONG signature_length;
	CK_ULONG length;		/* of the output */
	CK_BYTE iv[16];
	uint64_t at;			/* which of the window's operations */
	double since;
};

const struct operation *operation_named(const char *name);
void list_operations(void);
void load_module(const char *path);
const char *not_served(void);
void make_keys(int count);
void open_slot(struct slot *slot, int number, struct key *key, int asynchronous);
void close_slot(struct slot *slot);
void number_message(CK_BYTE *message, uint64_t window, uint64_t at);
CK_RV begin(struct slot *slot, uint64_t window);
CK_RV complete(struct slot *slot);
void keep(const struct slot *slot, CK_RV rv, CK_BYTE *to);
int is_right(const struct key *key, CK_BYTE *scratch, uint64_t window, uint64_t at, const CK_BYTE *result);
int whole_is_right(const struct slot *slot);

/* openssl.c: the judge. */
void load_openssl(void);
const char *openssl_version(void);
void *public_key_of(const CK_BYTE *info, CK_ULONG length);
void *public_key_on(const char *curve, const CK_BYTE *point, CK_ULONG length);
void make_peers(void);
const CK_BYTE *peer_point(int peer, CK_ULONG *length);
CK_ULONG shared_with(int peer, void *key, CK_BYTE out[80]);
int signature_verifies(void *key, const CK_BYTE *message, CK_ULONG length, const CK_BYTE *signature,
		       CK_ULONG signature_length);
int ecdsa_verifies(void *key, const CK_BYTE *digest, CK_ULONG length, const CK_BYTE *signature,
		   CK_ULONG signature_length);
CK_ULONG plain_result(const struct key *key, const CK_BYTE *message, const CK_BYTE iv[16], CK_BYTE *out);
const CK_BYTE *curve_oid(const char *name, CK_ULONG *length);
double time_openssl(const char *curve, const char *what, double seconds);

/* main.c */
double now(void);
void die(const char *what, unsigned long code) __attribute__((noreturn));

#define OK(call) \
	do { \
		CK_RV rv_ = (call); \
		if (rv_ != CKR_OK) die(#call, rv_); \
	} while (0)

#endif
