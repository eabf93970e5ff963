/* SPDX-License-Identifier: Apache-2.0 */
/* The interface "Vendor Metaslot" 1.1 of libmetaslot.so: what return codes cannot say.
 *
 *	CK_INTERFACE *interface;
 *	if (C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL_PTR, &interface, 0) == CKR_OK) {
 *		METASLOT_FUNCTION_LIST *metaslot = interface->pFunctionList;
 *		...
 *	}
 *
 * Texts are UTF-8 without an end mark. A NULL text asks for the length, as everywhere in PKCS#11.
 */
#ifndef METASLOT_METASLOT_H
#define METASLOT_METASLOT_H

#include <metaslot/pkcs11.h>

#ifdef __cplusplus
extern "C" {
#endif

#define METASLOT_INTERFACE "Vendor Metaslot"

/* How one PIN stands. */
typedef struct METASLOT_PIN_STATUS {
	CK_ULONG ulFailures;	/* wrong attempts since the last right one */
	CK_ULONG ulLeft;	/* attempts that are left before the PIN is locked */
	CK_ULONG ulRetryAt;	/* none is taken before then (seconds since 1970); 0: now */
} METASLOT_PIN_STATUS;

typedef struct METASLOT_TOKEN_STATUS {
	METASLOT_PIN_STATUS user;
	METASLOT_PIN_STATUS so;
} METASLOT_TOKEN_STATUS;

/* What a guess at one PIN costs who has a copy of the token's file. */
typedef struct METASLOT_PIN_COST {
	CK_ULONG ulMemory;	/* Argon2id's memory in KiB; 0: PBKDF2 */
	CK_ULONG ulPasses;	/* Argon2id's passes, PBKDF2's iterations; 0: there is no PIN */
	CK_ULONG ulMicroseconds; /* of one processor, when this process did it last; 0: it did not */
} METASLOT_PIN_COST;

typedef struct METASLOT_TOKEN_COST {
	METASLOT_PIN_COST user;
	METASLOT_PIN_COST so;
} METASLOT_TOKEN_COST;

/* One provider that serves a mechanism, or could. Texts are padded with blanks. */
typedef struct METASLOT_CANDIDATE {
	CK_UTF8CHAR provider[16];
	CK_FLAGS flags;		/* CKF_SIGN, ...: the operations that it has */
	CK_UTF8CHAR remark[96];	/* what stands in its way: an instruction set that is not there, ... */
} METASLOT_CANDIDATE;

typedef struct METASLOT_FUNCTION_LIST {
	CK_VERSION version;
	/* Why the calling thread's last call failed: the file and the line of the configuration, the
	 * damaged row, …; empty when the return code says it all. Works before C_Initialize. */
	CK_RV (*LastError)(CK_UTF8CHAR *pText, CK_ULONG *pulTextLen);
	CK_RV (*TokenStatus)(CK_SLOT_ID slotID, METASLOT_TOKEN_STATUS *pStatus);
	/* The file in which this process counts; empty when it has none. */
	CK_RV (*CountersPath)(CK_UTF8CHAR *pPath, CK_ULONG *pulPathLen);
	/* Who serves a mechanism, in the order in which they are asked. */
	CK_RV (*Candidates)(CK_MECHANISM_TYPE type, METASLOT_CANDIDATE *pList, CK_ULONG *pulCount);
	/* Since 1.1. */
	CK_RV (*TokenCost)(CK_SLOT_ID slotID, METASLOT_TOKEN_COST *pCost);
} METASLOT_FUNCTION_LIST;

#ifdef __cplusplus
}
#endif

#endif /* METASLOT_METASLOT_H */
