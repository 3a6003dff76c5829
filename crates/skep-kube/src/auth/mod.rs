//! Who is asking, and may they: certificates, tokens, impersonation, roles, and the reviews that tell others.
//!
//! Everything here is a pure function of documents and lookups that the server passes in, except [`pki`] and the
//! signing key of [`tokens`], which live in files of the data folder. Nothing here speaks HTTP.
//!
//! Keys and tokens never appear in errors or in `Debug` output.

#![allow(clippy::result_large_err, reason = "the error of a request is made once per request and answers it")]

pub mod action;
pub mod authorize;
pub mod identity;
pub mod impersonation;
pub mod node;
pub mod pki;
pub mod rbac;
pub mod reviews;
pub mod tls;
pub mod tokens;
pub mod user;

pub use action::{Action, PathAction, ResourceAction};
pub use authorize::{Authorizer, Authorizers, Decision};
pub use user::User;
