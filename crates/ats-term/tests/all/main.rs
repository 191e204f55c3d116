//! Tests of the crate from outside, in one program: what they share is compiled once.

mod common;
mod deep;
mod etf;
mod golden;
mod growth;
mod image;
mod image_host;
mod keys;
mod nested;
mod packed;
mod terms;
