/* SPDX-License-Identifier: Apache-2.0 */
/* The interface "Vendor Metaslot" 1.9 of libmetaslot.so: what return codes cannot say.
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

/* Of an object that slot 0 shows and that is in another module's token or in a pool: what the configuration calls that
 * (UTF-8 without an end mark). Read only; our own objects do not have it. */
#define CKA_METASLOT_HOME (CKA_VENDOR_DEFINED | 0x4d530004UL)

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

/* An identity of a token, for its officer. */
typedef struct METASLOT_IDENTITY {
	CK_UTF8CHAR name[64];	/* padded with blanks */
	METASLOT_PIN_STATUS pin;
} METASLOT_IDENTITY;

/* What Identities does. */
#define METASLOT_IDENTITY_LIST 0UL
#define METASLOT_IDENTITY_ADD 1UL
#define METASLOT_IDENTITY_REVOKE 2UL
#define METASLOT_IDENTITY_PIN 3UL

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

/* What becomes of the fast login that is configured for a token. */
typedef struct METASLOT_FAST_LOGIN {
	CK_ULONG ulSeconds;	/* how long one lasts after a login; 0: none is configured */
	CK_BBOOL bPossible;	/* there is a place for its secret */
	CK_UTF8CHAR text[256];	/* which, or why there is none, padded with blanks */
} METASLOT_FAST_LOGIN;

/* One provider that serves a mechanism, or could. Texts are padded with blanks. */
typedef struct METASLOT_CANDIDATE {
	CK_UTF8CHAR provider[16];
	CK_FLAGS flags;		/* CKF_SIGN, ...: the operations that it has */
	CK_UTF8CHAR remark[96];	/* what stands in its way: an instruction set that is not there, ... */
} METASLOT_CANDIDATE;

/* One thing that the policy of a token refuses or allows. Texts are padded with blanks. */
typedef struct METASLOT_RULE {
	CK_UTF8CHAR name[24];	/* as "allow" in the configuration knows it */
	CK_UTF8CHAR sentence[192];	/* what is refused */
	CK_BBOOL bRefused;	/* CK_FALSE: this token allows it */
} METASLOT_RULE;

/* Something to be done, to ask what it takes. */
typedef struct METASLOT_JOB {
	CK_MECHANISM_TYPE mechanism;
	CK_FLAGS operation;	/* CKF_DIGEST, CKF_ENCRYPT, CKF_DECRYPT, CKF_SIGN or CKF_VERIFY */
	CK_ULONG ulKeyBits;	/* of an asymmetric key; otherwise 0 */
	CK_ULONG ulBytes;	/* of data */
	CK_ULONG ulMicroseconds; /* how long each provider is measured, 10 seconds at most; 0: say what is expected */
} METASLOT_JOB;

#define METASLOT_CHOSEN	1UL	/* it would be taken now, by a caller that waits */
#define METASLOT_OUT	2UL	/* it fails, and is left alone for a while */
#define METASLOT_DIFFERS	4UL	/* what it computes is not what the others compute; where a time was given */

/* What one provider takes for a job. */
typedef struct METASLOT_ESTIMATE {
	CK_UTF8CHAR provider[16];	/* padded with blanks */
	CK_ULONG ulPicoseconds;	/* CK_UNAVAILABLE_INFORMATION: not known */
	CK_ULONG ulFailures;	/* at what another one then did, since C_Initialize */
	CK_FLAGS flags;		/* METASLOT_CHOSEN, METASLOT_OUT, METASLOT_DIFFERS */
} METASLOT_ESTIMATE;

/* What ExamineToken tells while it goes on. */
typedef struct METASLOT_REMARK {
	CK_ULONG ulDone;	/* so many objects were looked at, */
	CK_ULONG ulTotal;	/* of so many */
	CK_ULONG ulObject;	/* its number in the store; CK_UNAVAILABLE_INFORMATION: the whole token */
	CK_UTF8CHAR text[192];	/* what is wrong, padded with blanks; blank when only time has passed */
} METASLOT_REMARK;

/* What ExamineToken found. */
typedef struct METASLOT_EXAMINED {
	CK_ULONG ulObjects;	/* that were looked at */
	CK_ULONG ulUnverified;	/* of them, that were made without a login and can be anybody's */
	CK_ULONG ulFindings;	/* that something is wrong */
	CK_ULONG ulRemoved;	/* objects that were taken out */
} METASLOT_EXAMINED;

/* Anything but CKR_OK ends the examination with CKR_FUNCTION_CANCELED, and nothing is repaired. It
 * must not call the library. */
typedef CK_RV (*METASLOT_NOTIFY)(void *pApplication, const METASLOT_REMARK *pRemark);

typedef struct METASLOT_FUNCTION_LIST {
	CK_VERSION version;
	/* Why the calling thread's last call failed: the file and the line of the configuration, the
	 * damaged row, …; empty when the return code says it all. Works before C_Initialize. */
	CK_RV (*LastError)(CK_UTF8CHAR *pText, CK_ULONG *pulTextLen);
	/* CKR_FUNCTION_NOT_SUPPORTED for a token of another module, which says no number. */
	CK_RV (*TokenStatus)(CK_SLOT_ID slotID, METASLOT_TOKEN_STATUS *pStatus);
	/* The file in which this process counts; empty when it has none. */
	CK_RV (*CountersPath)(CK_UTF8CHAR *pPath, CK_ULONG *pulPathLen);
	/* Who serves a mechanism, in the order in which they are asked. */
	CK_RV (*Candidates)(CK_MECHANISM_TYPE type, METASLOT_CANDIDATE *pList, CK_ULONG *pulCount);
	/* Since 1.1. */
	CK_RV (*TokenCost)(CK_SLOT_ID slotID, METASLOT_TOKEN_COST *pCost);
	/* Since 1.1. Looks at every object of a token: is it as it was last written, is it found, and
	 * are these all? CKU_USER or CKU_SO with the PIN, which counts like a login; needs no session.
	 * With bRepair whatever is damaged is then taken out. notify may be NULL. */
	CK_RV (*ExamineToken)(CK_SLOT_ID slotID, CK_ULONG userType, CK_UTF8CHAR *pPin,
	    CK_ULONG ulPinLen, CK_BBOOL bRepair, METASLOT_NOTIFY notify, void *pApplication,
	    METASLOT_EXAMINED *pExamined);
	/* Since 1.2. The policy of a token, a row for everything that a policy can refuse. */
	CK_RV (*TokenPolicy)(CK_SLOT_ID slotID, METASLOT_RULE *pList, CK_ULONG *pulCount);
	/* Since 1.3. Who can do a job, in order, what each is expected to take, and who would do it. With a time
	 * in the job what each takes, with keys that are made for that, and whether they agree: they do it in turns,
	 * by the calling thread; several threads at once show what a crowd takes. */
	CK_RV (*Estimates)(const METASLOT_JOB *pJob, METASLOT_ESTIMATE *pList, CK_ULONG *pulCount);
	/* Since 1.4. Copies the token, sealed as it is, into a file that must not be there, while others use
	 * it, and looks at all of the copy as ExamineToken does; or with bRestore makes such a file the token of a
	 * slot that has none. Where something is found wrong, nothing is made. The PINs stay the same. */
	CK_RV (*CopyToken)(CK_SLOT_ID slotID, CK_ULONG userType, CK_UTF8CHAR *pPin, CK_ULONG ulPinLen,
	    CK_UTF8CHAR *pPath, CK_ULONG ulPathLen, CK_BBOOL bRestore, METASLOT_NOTIFY notify,
	    void *pApplication, METASLOT_EXAMINED *pExamined);
	/* Since 1.5. Gives the token another label, of 1 to 32 bytes of UTF-8. CKU_USER or CKU_SO with the PIN, which
	 * counts like a login; needs no session. Other processes see it at once. */
	CK_RV (*RenameToken)(CK_SLOT_ID slotID, CK_ULONG userType, CK_UTF8CHAR *pPin, CK_ULONG ulPinLen,
	    CK_UTF8CHAR *pLabel, CK_ULONG ulLabelLen);
	/* Since 1.5. Takes all files of the token away that has this label; CKU_SO with the PIN. CKR_DEVICE_ERROR
	 * while another process has the token open, CKR_SESSION_EXISTS while this one has a session with it. The slot
	 * then waits for C_InitToken. */
	CK_RV (*RemoveToken)(CK_SLOT_ID slotID, CK_ULONG userType, CK_UTF8CHAR *pPin, CK_ULONG ulPinLen,
	    CK_UTF8CHAR *pLabel, CK_ULONG ulLabelLen);
	/* Since 1.6. Whether fast logins to the token are possible for this process. A PIN below 8 bytes has none. */
	CK_RV (*FastLogin)(CK_SLOT_ID slotID, METASLOT_FAST_LOGIN *pFastLogin);
	/* Since 1.7. Why the configuration that the environment names now is not taken, with file and line; empty when
	 * it is. None of the modules that it names is loaded. Works before C_Initialize. */
	CK_RV (*ConfigurationProblem)(CK_UTF8CHAR *pText, CK_ULONG *pulTextLen);
	/* Since 1.8. What C_DigestInit and C_Digest do, or those of CKF_ENCRYPT, CKF_DECRYPT or (since 1.9) CKF_SIGN in the
	 * place of CKF_DIGEST, in one call, which takes less time. A digest has no key. It is none of the session's
	 * operations, which go on; threads may make such calls in one session at the same time. A NULL pOut asks for the
	 * length. No login can be for it: CKR_USER_NOT_LOGGED_IN with a key that has CKA_ALWAYS_AUTHENTICATE. */
	CK_RV (*Whole)(CK_SESSION_HANDLE hSession, CK_FLAGS operation, CK_MECHANISM *pMechanism, CK_OBJECT_HANDLE hKey,
	    CK_BYTE *pData, CK_ULONG ulDataLen, CK_BYTE *pOut, CK_ULONG *pulOutLen);
	/* Since 1.8. Lists the identities of a token (at most 256), adds one, revokes one, or sets the PIN of one, which
	 * unlocks it; pPin is the officer's, which counts like a login. Needs no session. The name and the new PIN are
	 * for those that take one, the list and its count for METASLOT_IDENTITY_LIST. CKR_ARGUMENTS_BAD where an identity
	 * that is to be added is there, or another one is not. */
	CK_RV (*Identities)(CK_SLOT_ID slotID, CK_UTF8CHAR *pPin, CK_ULONG ulPinLen, CK_ULONG ulWhat,
	    CK_UTF8CHAR *pName, CK_ULONG ulNameLen, CK_UTF8CHAR *pNewPin, CK_ULONG ulNewPinLen,
	    METASLOT_IDENTITY *pList, CK_ULONG *pulCount);
} METASLOT_FUNCTION_LIST;

#ifdef __cplusplus
}
#endif

#endif /* METASLOT_METASLOT_H */
