//go:build race

package endtoend

// raced says whether these tests look for races, as the sidecars they start then do, too.
const raced = true
