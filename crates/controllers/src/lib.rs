//! The controllers: a folder per kind that observes and acts.
