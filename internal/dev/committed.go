package dev

import "github.com/sidekeeper/sidekeeper/internal/embedded"

// committed is told what ensembles have committed, in a program that is built with the tag `traced`; in others it is nil.
var committed func(embedded.Change)
