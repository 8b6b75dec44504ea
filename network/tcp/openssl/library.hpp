// OpenSSL 3, which is loaded where it is asked for only.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>

namespace unisono::tcp {

static_assert(OPENSSL_VERSION_NUMBER >= 0x30000000L, "TLS is built with the headers of OpenSSL 3");

/// The functions of it that are used here, by their own names.
struct OpenSsl {
  decltype(&::OPENSSL_init_crypto) init_crypto = nullptr;
  decltype(&::ERR_clear_error) clear_error = nullptr;
  decltype(&::ERR_peek_error) peek_error = nullptr;
  decltype(&::ERR_reason_error_string) reason_of_error = nullptr;
  decltype(&::BIO_get_new_index) bio_get_new_index = nullptr;
  decltype(&::BIO_meth_new) bio_meth_new = nullptr;
  decltype(&::BIO_meth_set_write_ex) bio_meth_set_write_ex = nullptr;
  decltype(&::BIO_meth_set_read_ex) bio_meth_set_read_ex = nullptr;
  decltype(&::BIO_meth_set_ctrl) bio_meth_set_ctrl = nullptr;
  decltype(&::BIO_new) bio_new = nullptr;
  decltype(&::BIO_set_init) bio_set_init = nullptr;
  decltype(&::BIO_set_data) bio_set_data = nullptr;
  decltype(&::BIO_get_data) bio_get_data = nullptr;
  decltype(&::BIO_set_flags) bio_set_flags = nullptr;
  decltype(&::BIO_clear_flags) bio_clear_flags = nullptr;
  decltype(&::TLS_method) tls_method = nullptr;
  decltype(&::SSL_CTX_new) ctx_new = nullptr;
  decltype(&::SSL_CTX_ctrl) ctx_ctrl = nullptr;
  decltype(&::SSL_CTX_set_options) ctx_set_options = nullptr;
  decltype(&::SSL_CTX_clear_options) ctx_clear_options = nullptr;
  decltype(&::SSL_CTX_set_ciphersuites) ctx_set_ciphersuites = nullptr;
  decltype(&::SSL_CTX_set_num_tickets) ctx_set_num_tickets = nullptr;
  decltype(&::SSL_CTX_set_default_read_buffer_len) ctx_set_read_buffer = nullptr;
  decltype(&::SSL_CTX_set_psk_use_session_callback) ctx_set_psk_use = nullptr;
  decltype(&::SSL_CTX_set_psk_find_session_callback) ctx_set_psk_find = nullptr;
  decltype(&::SSL_new) ssl_new = nullptr;
  decltype(&::SSL_free) ssl_free = nullptr;
  decltype(&::SSL_set_ex_data) ssl_set_data = nullptr;
  decltype(&::SSL_get_ex_data) ssl_get_data = nullptr;
  decltype(&::SSL_set_bio) ssl_set_bio = nullptr;
  decltype(&::SSL_set_verify) ssl_set_verify = nullptr;
  decltype(&::SSL_set_connect_state) ssl_set_connect_state = nullptr;
  decltype(&::SSL_set_accept_state) ssl_set_accept_state = nullptr;
  decltype(&::SSL_do_handshake) ssl_do_handshake = nullptr;
  decltype(&::SSL_session_reused) ssl_session_reused = nullptr;
  decltype(&::SSL_get_error) ssl_get_error = nullptr;
  decltype(&::SSL_read_ex) ssl_read = nullptr;
  decltype(&::SSL_write_ex) ssl_write = nullptr;
  decltype(&::SSL_has_pending) ssl_has_pending = nullptr;
  decltype(&::SSL_key_update) ssl_key_update = nullptr;
  decltype(&::SSL_CIPHER_find) cipher_find = nullptr;
  decltype(&::SSL_SESSION_new) session_new = nullptr;
  decltype(&::SSL_SESSION_free) session_free = nullptr;
  decltype(&::SSL_SESSION_set1_master_key) session_set_key = nullptr;
  decltype(&::SSL_SESSION_set_cipher) session_set_cipher = nullptr;
  decltype(&::SSL_SESSION_set_protocol_version) session_set_version = nullptr;

  /// Loads it, once for the process. Throws Error(kBootstrap) that says what to install.
  static const OpenSsl& instance();

 private:
  OpenSsl();
  template <class Function>
  void find(void* handle, const char* name, Function& into);

  std::string fault_;  ///< why it is not there
};

}  // namespace unisono::tcp
