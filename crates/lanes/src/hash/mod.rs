// SPDX-License-Identifier: Apache-2.0
//! MD5, SHA-1, SHA-2, SHA-3 and HMAC.
