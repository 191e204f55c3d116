//! Integration tests of the crate in one program, so that shared code is compiled once.

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
