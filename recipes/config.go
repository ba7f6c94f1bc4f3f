package recipes

import "errors"

// Errors of the configuration.
var (
	// ErrNoKey means that there is no such key.
	ErrNoKey = errors.New("no such key")
	// ErrPrecondition means that the key does not meet the precondition.
	ErrPrecondition = errors.New("the key does not meet the precondition")
	// ErrKeyHasChildren means that other keys lie below the key.
	ErrKeyHasChildren = errors.New("other keys lie below the key")
)
