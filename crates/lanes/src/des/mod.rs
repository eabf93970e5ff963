// SPDX-License-Identifier: Apache-2.0
//! Bitsliced triple DES.
