//go:build race

package main

// raced says that these tests look for races; what they start does so too.
const raced = true
