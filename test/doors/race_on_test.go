//go:build race

package doors

// raced says whether these tests look for races, as the programs that they start then do, too.
const raced = true
