package dev

import "os"

// Windows removes no leftovers: a file that is locked there says nothing of its process.
func mark(string) *os.File { return nil }

func clearLeftovers() {}
