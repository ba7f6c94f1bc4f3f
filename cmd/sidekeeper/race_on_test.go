//go:build race

package main

// raced says whether these tests look for races, which takes room on stacks.
const raced = true
