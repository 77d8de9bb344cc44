# frozen_string_literal: true

require 'json'
require 'active_support/core_ext'
require_relative 'invoice'

module Billing
  GRACE_DAYS = 14

  class PaymentFailed < StandardError; end

  # A customer who pays every month.
  class Subscription < ApplicationRecord
    include Comparable

    belongs_to :customer
    validates :plan, presence: true
    attr_reader :plan

    # Charges the next month.
    #
    # @return [Invoice]
    def charge!(amount, currency = 'EUR', *tags, retries: 3, **options, &block)
      invoice = Invoice.new(amount, currency)
      begin
        gateway.submit(invoice)
      rescue Timeout::Error => e
        retries -= 1
        retry if retries.positive?
        raise PaymentFailed, e.message
      ensure
        log(invoice)
      end
      invoice
    end

    def self.expired
      where('paid_until < ?', GRACE_DAYS.days.ago)
    end

    class << self
      def import(raw)
        JSON.parse(raw).map { |row| new(row) }
      end
    end

    def <=>(other)
      plan <=> other.plan
    end

    private

    def log(invoice) = logger.info("invoice #{invoice.id}")

    Plan = Struct.new(:name, :cents) do
      def yearly
        cents * 12
      end
    end
  end

  module Fees
    module_function

    def percent(amount)
      amount * 15 / 1000
    end
  end
end

def cancel(subscription)
  subscription.destroy!
end

namespace :billing do
  task charge: :environment do
    Billing::Subscription.expired.each(&:charge!)
  end
end
