#include "network/tcp/openssl/library.hpp"

#include <dlfcn.h>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::tcp {

namespace {

/// It brings libcrypto.so.3, whose functions are found through it.
constexpr const char* kLibrary = "libssl.so.3";

}  // namespace

template <class Function>
void OpenSsl::find(void* handle, const char* name, Function& into) {
  into = reinterpret_cast<Function>(dlsym(handle, name));
  if (into == nullptr) fault_ = formatted("it has no function {}", name);
}

OpenSsl::OpenSsl() {
  // Never closed: it keeps data of every thread that has used it.
  void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    fault_ = why == nullptr ? "not found" : why;
    return;
  }
  find(handle, "OPENSSL_init_crypto", init_crypto);
  find(handle, "ERR_clear_error", clear_error);
  find(handle, "ERR_peek_error", peek_error);
  find(handle, "ERR_reason_error_string", reason_of_error);
  find(handle, "BIO_get_new_index", bio_get_new_index);
  find(handle, "BIO_meth_new", bio_meth_new);
  find(handle, "BIO_meth_set_write_ex", bio_meth_set_write_ex);
  find(handle, "BIO_meth_set_read_ex", bio_meth_set_read_ex);
  find(handle, "BIO_meth_set_ctrl", bio_meth_set_ctrl);
  find(handle, "BIO_new", bio_new);
  find(handle, "BIO_set_init", bio_set_init);
  find(handle, "BIO_set_data", bio_set_data);
  find(handle, "BIO_get_data", bio_get_data);
  find(handle, "BIO_set_flags", bio_set_flags);
  find(handle, "BIO_clear_flags", bio_clear_flags);
  find(handle, "TLS_method", tls_method);
  find(handle, "SSL_CTX_new", ctx_new);
  find(handle, "SSL_CTX_ctrl", ctx_ctrl);
  find(handle, "SSL_CTX_set_options", ctx_set_options);
  find(handle, "SSL_CTX_clear_options", ctx_clear_options);
  find(handle, "SSL_CTX_set_ciphersuites", ctx_set_ciphersuites);
  find(handle, "SSL_CTX_set_num_tickets", ctx_set_num_tickets);
  find(handle, "SSL_CTX_set_default_read_buffer_len", ctx_set_read_buffer);
  find(handle, "SSL_CTX_set_psk_use_session_callback", ctx_set_psk_use);
  find(handle, "SSL_CTX_set_psk_find_session_callback", ctx_set_psk_find);
  find(handle, "SSL_new", ssl_new);
  find(handle, "SSL_free", ssl_free);
  find(handle, "SSL_set_ex_data", ssl_set_data);
  find(handle, "SSL_get_ex_data", ssl_get_data);
  find(handle, "SSL_set_bio", ssl_set_bio);
  find(handle, "SSL_set_verify", ssl_set_verify);
  find(handle, "SSL_set_connect_state", ssl_set_connect_state);
  find(handle, "SSL_set_accept_state", ssl_set_accept_state);
  find(handle, "SSL_do_handshake", ssl_do_handshake);
  find(handle, "SSL_session_reused", ssl_session_reused);
  find(handle, "SSL_get_error", ssl_get_error);
  find(handle, "SSL_read_ex", ssl_read);
  find(handle, "SSL_write_ex", ssl_write);
  find(handle, "SSL_has_pending", ssl_has_pending);
  find(handle, "SSL_key_update", ssl_key_update);
  find(handle, "SSL_CIPHER_find", cipher_find);
  find(handle, "SSL_SESSION_new", session_new);
  find(handle, "SSL_SESSION_free", session_free);
  find(handle, "SSL_SESSION_set1_master_key", session_set_key);
  find(handle, "SSL_SESSION_set_cipher", session_set_cipher);
  find(handle, "SSL_SESSION_set_protocol_version", session_set_version);
  // Connections may outlive what it would tidy up at the end of the process.
  if (fault_.empty() && init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) fault_ = "it does not start";
}

const OpenSsl& OpenSsl::instance() {
  static const OpenSsl library;
  if (library.fault_.empty()) return library;
  throw Error(ErrorCode::kBootstrap, formatted("OpenSSL 3, which TLS needs, cannot be loaded: {}. Install it (Debian: "
                                               "libssl3), or add its folder to LD_LIBRARY_PATH",
                                               library.fault_));
}

}  // namespace unisono::tcp
