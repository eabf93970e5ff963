// SPDX-License-Identifier: Apache-2.0
//! Elliptic curves over GF(2^m).
