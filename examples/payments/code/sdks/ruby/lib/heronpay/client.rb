# frozen_string_literal: true

require "json"
require "net/http"
require "securerandom"

module HeronPay
  class Error < StandardError; end

  # The payment is not possible as requested; +field+ names what to correct.
  class PaymentRefused < Error
    attr_reader :code, :field

    def initialize(code, message, field)
      super(message)
      @code = code
      @field = field
    end
  end

  # Talks to the Heron Pay API with one persistent connection. Not thread safe: use one client per thread.
  class Client
    READ_TIMEOUT = 35

    def initialize(secret_key:, merchant_id:, host: "api.heronpay.example")
      @secret_key = secret_key
      @merchant_id = merchant_id
      @http = Net::HTTP.new(host, 443)
      @http.use_ssl = true
      @http.read_timeout = READ_TIMEOUT
    end

    def create_payment(amount:, currency: nil, card_token: nil, reference: "", idempotency_key: SecureRandom.uuid)
      post("/payments", idempotency_key,
           amount: amount, currency: currency, card_token: card_token,
           reference: reference, merchant_id: @merchant_id)
    end

    def refund(payment_id, amount:, idempotency_key: SecureRandom.uuid)
      post("/payments/#{payment_id}/refunds", idempotency_key, amount: amount)
    end

    private

    def post(path, idempotency_key, body)
      request = Net::HTTP::Post.new(path, headers(idempotency_key))
      request.body = JSON.generate(body.compact)
      read(@http.request(request))
    end

    def headers(idempotency_key)
      {
        "Authorization" => "Bearer #{@secret_key}",
        "Content-Type" => "application/json",
        "Idempotency-Key" => idempotency_key
      }
    end

    def read(response)
      case response
      when Net::HTTPSuccess
        JSON.parse(response.body)
      when Net::HTTPUnprocessableEntity
        error = JSON.parse(response.body).fetch("error")
        raise PaymentRefused.new(error["code"], error["message"], error["field"])
      else
        raise Error, "Heron Pay answered #{response.code}"
      end
    end
  end
end
