# shellcheck shell=bash
# Not a kind: a certificate authority for the instances @secure, which speak TLS and want a login. Its folder, in POSTRIDER_TEST_CA, has
#
#   ca.pem                        the authority that servers and clients trust
#   server.pem, server.key        of localhost and 127.0.0.1
#   client.pem, client.key        of the user postrider
#   expired.pem, expired.key      of the same user, and no longer valid
#   stranger.pem, stranger.key    of the same user, by another authority
#   other.pem                     that other authority

ca_dir() { echo "$BASE/ca"; }

ca_make() { with_lock ca ca_make_once; }

ca_make_once() {
  local dir
  dir=$(ca_dir)
  if [[ -e $dir/complete ]]; then return; fi
  command -v openssl >/dev/null || apt_install openssl
  rm -rf "$dir"
  mkdir -p "$dir"
  ca_authority ca "Postrider test authority"
  ca_authority other "Another authority"
  ca_sign ca server localhost "subjectAltName=DNS:localhost,IP:127.0.0.1" 3650
  ca_sign ca client postrider "extendedKeyUsage=clientAuth" 3650
  ca_sign ca expired postrider "extendedKeyUsage=clientAuth" -1
  ca_sign other stranger postrider "extendedKeyUsage=clientAuth" 3650
  chmod a+rX "$dir" "$dir"/*
  touch "$dir/complete"
}

# ca_authority NAME SUBJECT
ca_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=$2" \
    -keyout "$(ca_dir)/$1.key" -out "$(ca_dir)/$1.pem" 2>/dev/null || die "openssl cannot make an authority"
}

# ca_sign AUTHORITY NAME SUBJECT EXTENSION DAYS
ca_sign() {
  local dir
  dir=$(ca_dir)
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$3" -keyout "$dir/$2.key" -out "$dir/$2.csr" 2>/dev/null ||
    die "openssl cannot make the key $2"
  openssl x509 -req -in "$dir/$2.csr" -CA "$dir/$1.pem" -CAkey "$dir/$1.key" -CAcreateserial -days "$5" \
    -extfile <(echo "$4") -out "$dir/$2.pem" 2>/dev/null || die "openssl cannot make the certificate $2"
  rm -f "$dir/$2.csr"
}

# is_secure is for servers that speak TLS and want a login: instances @secure, and most clusters.
is_secure() { [[ $INSTANCE == secure || $KIND == kafka_cluster || $KIND == rabbitmq_cluster ]]; }
