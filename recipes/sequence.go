package recipes

import "errors"

// Errors of sequences.
var (
	// ErrNoSequence means that there is no such sequence.
	ErrNoSequence = errors.New("no such sequence")
	// ErrSequenceExists means that there is such a sequence already.
	ErrSequenceExists = errors.New("there is such a sequence already")
	// ErrExhausted means that the sequence has come to the end of 64-bit numbers, or would.
	ErrExhausted = errors.New("no numbers of 64 bits are left")
	// ErrMalformed means that what is stored is not a number of 8 bytes.
	ErrMalformed = errors.New("what is stored is not a number of 8 bytes")
)
