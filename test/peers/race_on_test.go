//go:build race

package peers

// raced says whether these tests look for races, as the sidecars that they start then do, too.
const raced = true
