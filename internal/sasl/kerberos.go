package sasl

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/sidekeeper/sidekeeper/internal/reload"
)

// Kerberos says who the client is to a KDC, and who the servers are.
type Kerberos struct {
	Principal string // NAME, NAME/HOST or either with @REALM; empty: that of the ticket in the credential cache
	Keytab    string // file with the principal's keys; empty: there is a ticket in the credential cache
	Config    string // file like /etc/krb5.conf; empty: $KRB5_CONFIG, or else that file
	Service   string // the servers' principal: NAME, to which their host is added, NAME/HOST or NAME/HOST@REALM
}

// A ticket is for one service.
type ticket struct {
	ticket messages.Ticket
	key    types.EncryptionKey
	client types.PrincipalName
	realm  string // the client's
	ends   time.Time
}

// who is the client as KDCs write it.
func (t ticket) who() string { return t.client.PrincipalNameString() + "@" + t.realm }

// ask gets a ticket for a service by what a login has granted. It waits for KDCs as long as the library does: 5 s for each, twice.
func (g grant) ask(settings *config.Config, service types.PrincipalName, realm string) (ticket, error) {
	asker := client.NewWithKeytab(g.name.PrincipalNameString(), g.realm, keytab.New(), settings)
	asker.Credentials.SetCName(g.name)
	defer asker.Destroy()
	if realm == "" {
		realm = settings.ResolveRealm(service.NameString[len(service.NameString)-1])
	}
	granted, key := g.ticket, g.key
	if realm != "" && realm != g.realm { // which takes a ticket for the other realm first
		other := types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
		_, answer, err := asker.TGSREQGenerateAndExchange(other, g.realm, granted, key, false)
		if err != nil {
			return ticket{}, unreached(err)
		}
		granted, key = answer.Ticket, answer.DecryptedEncPart.Key
	} else {
		realm = g.realm
	}
	_, answer, err := asker.TGSREQGenerateAndExchange(service, realm, granted, key, false)
	if err != nil {
		return ticket{}, unreached(err)
	}
	got := answer.DecryptedEncPart
	switch {
	case !isAES(got.Key.KeyType):
		return ticket{}, fmt.Errorf("the ticket's key has the encryption type %d: only AES is supported", got.Key.KeyType)
	case !time.Now().Before(got.EndTime):
		return ticket{}, fmt.Errorf("the KDC's new ticket ran out at %s by this machine's clock", got.EndTime.Format(time.RFC3339))
	}
	return ticket{answer.Ticket, got.Key, asker.Credentials.CName(), g.realm, got.EndTime}, nil
}

// unreached wraps an error of the library with ErrUnreached if no KDC has answered.
func unreached(err error) error {
	if told, is := errors.AsType[krberror.Krberror](err); is && told.RootCause == krberror.NetworkingError {
		return fmt.Errorf("%w: %w", ErrUnreached, err)
	}
	return err
}

func isAES(kind int32) bool {
	switch kind {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96,
		etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192:
		return true
	}
	return false
}

// settings are those of the file. Its directives that the library does not know, such as includedir, have no effect.
func (k Kerberos) settings() (*config.Config, error) {
	name := k.Config
	if name == "" {
		name = os.Getenv("KRB5_CONFIG")
	}
	if name == "" {
		name = "/etc/krb5.conf"
	}
	content, err := reload.Read(name)
	if err != nil {
		return nil, err
	}
	settings, err := config.NewFromString(string(content))
	if _, unsupported := errors.AsType[config.UnsupportedDirective](err); err != nil && !unsupported {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return settings, nil
}

// login asks a KDC for the ticket with which others are asked for.
func (k Kerberos) login(settings *config.Config) (grant, error) {
	keys, err := k.keys()
	if err != nil {
		return grant{}, unasked{err}
	}
	name, realm, err := k.principal(settings)
	if err != nil {
		return grant{}, unasked{err}
	}
	if !settings.LibDefaults.DNSLookupKDC { // or the library asks DNS
		if _, _, err := settings.GetKDCs(realm, true); err != nil {
			return grant{}, unasked{fmt.Errorf("the settings of Kerberos name no KDC, and dns_lookup_kdc is false: %w", err)}
		}
	}
	asker := client.NewWithKeytab(name.PrincipalNameString(), realm, keys, settings, client.DisablePAFXFAST(true))
	defer asker.Destroy()
	request, err := messages.NewASReqForTGT(realm, settings, name)
	if err != nil {
		return grant{}, err
	}
	answer, err := asker.ASExchange(realm, request, 0)
	if err != nil {
		return grant{}, fmt.Errorf("login as %s@%s: %w", name.PrincipalNameString(), realm, unreached(err))
	}
	granted := answer.DecryptedEncPart
	return grant{asker.Credentials.CName(), asker.Credentials.Domain(), answer.Ticket, granted.Key, time.Now(), granted.EndTime}, nil
}

// keys are those of the keytab.
func (k Kerberos) keys() (keys *keytab.Keytab, err error) {
	defer func() { err = orPanic(err, recover(), k.Keytab+" is no keytab") }()
	content, err := reload.Read(k.Keytab)
	if err != nil {
		return nil, err
	}
	keys = keytab.New()
	if err := keys.Unmarshal(content); err != nil {
		return nil, fmt.Errorf("%s: %w", k.Keytab, err)
	}
	return keys, nil
}

// hasKey says why the keytab is of no use.
func (k Kerberos) hasKey(settings *config.Config) error {
	keys, err := k.keys()
	if err != nil {
		return err
	}
	name, realm, err := k.principal(settings)
	if err != nil {
		return err
	}
	for i := range keys.Entries {
		if of := keys.Entries[i].Principal; of.Realm == realm && slices.Equal(of.Components, name.NameString) {
			return nil
		}
	}
	return fmt.Errorf("%s has no key of %s@%s", k.Keytab, name.PrincipalNameString(), realm)
}

// principal is the client's.
func (k Kerberos) principal(settings *config.Config) (name types.PrincipalName, realm string, err error) {
	name, realm = types.ParseSPNString(k.Principal)
	if realm == "" {
		realm = settings.LibDefaults.DefaultRealm
	}
	if realm == "" {
		return name, "", fmt.Errorf("the principal %s has no realm, and the settings of Kerberos have no default_realm", k.Principal)
	}
	return name, realm, nil
}

// takeCached takes the ticket that kinit has put into the credential cache.
func (k Kerberos) takeCached(settings *config.Config) (grant, error) {
	path, err := CachePath()
	if err != nil {
		return grant{}, err
	}
	cache, err := readCache(path)
	if err != nil {
		return grant{}, err
	}
	realm, is := cache.GetClientRealm(), cache.GetClientPrincipalName().PrincipalNameString()
	if k.Principal != "" {
		name, of, err := k.principal(settings)
		if err == nil && (name.PrincipalNameString() != is || of != realm) {
			err = fmt.Errorf("the ticket in %s is %s@%s's, not %s@%s's", path, is, realm, name.PrincipalNameString(), of)
		}
		if err != nil {
			return grant{}, err
		}
	}
	entry, found := cache.GetEntry(types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}})
	switch {
	case !found:
		return grant{}, fmt.Errorf("no ticket of %s@%s in %s is for its realm: get one with kinit", is, realm, path)
	case !time.Now().Before(entry.EndTime):
		return grant{}, fmt.Errorf("the ticket of %s@%s in %s ran out at %s: get one with kinit",
			is, realm, path, entry.EndTime.Format(time.RFC3339))
	}
	var granted messages.Ticket
	if err := granted.Unmarshal(entry.Ticket); err != nil {
		return grant{}, fmt.Errorf("%s: %w", path, err)
	}
	return grant{cache.GetClientPrincipalName(), realm, granted, entry.Key, time.Now(), entry.EndTime}, nil
}

func readCache(path string) (cache *credentials.CCache, err error) {
	defer func() { err = orPanic(err, recover(), path+" is no credential cache") }()
	content, err := reload.Read(path)
	if err != nil {
		return nil, fmt.Errorf("there is no ticket, which kinit gets: %w", err)
	}
	cache = new(credentials.CCache)
	if err := cache.Unmarshal(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cache, nil
}

// CachePath is where kinit puts tickets.
func CachePath() (string, error) {
	const variable = "KRB5CCNAME"
	name := os.Getenv(variable)
	if name == "" {
		return "/tmp/krb5cc_" + strconv.Itoa(os.Getuid()), nil
	}
	kind, path, typed := strings.Cut(name, ":")
	switch {
	case !typed || strings.HasPrefix(name, "/"):
		return name, nil
	case kind != "FILE":
		return "", fmt.Errorf("%s is %s: only FILE:/path is supported", variable, name)
	}
	return path, nil
}

// of is the principal of the servers at a host, and its realm if that is given.
func (k Kerberos) of(host string) (service types.PrincipalName, realm string) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	text, realm, _ := strings.Cut(k.Service, "@")
	if !strings.Contains(text, "/") {
		text += "/" + host
	}
	return types.NewPrincipalName(nametype.KRB_NT_SRV_HST, text), realm
}
