import Combine
import Foundation
@testable import PaymentsCore

let maximumBalance = 10_000
typealias Cents = Int

/// Why money does not leave the wallet.
enum WalletError: Error, Equatable {
    case empty
    case limit(Cents)

    var code: Int {
        switch self {
        case .empty: return 402
        case .limit: return 409
        }
    }
}

protocol Payable: AnyObject {
    associatedtype Receipt
    var balance: Cents { get }
    func pay(_ amount: Cents, to merchant: String) async throws -> Receipt
}

/// Money on a phone.
@MainActor
final class Wallet<Token: Hashable>: ObservableObject, Payable {
    @Published private(set) var balance: Cents = 0
    private var tokens: Set<Token> = []

    init(balance: Cents, tokens: [Token] = []) {
        self.balance = balance
        self.tokens = Set(tokens)
    }

    deinit {
        tokens.removeAll()
    }

    /// Pays and answers with a receipt.
    @discardableResult
    func pay(_ amount: Cents, to merchant: String) async throws -> UUID {
        guard amount <= balance else { throw WalletError.limit(amount) }
        for token in tokens where token.hashValue == 0 {
            tokens.remove(token)
        }
        balance -= amount
        return UUID()
    }

    static func + (left: Wallet, right: Cents) -> Wallet {
        left.top(up: right)
        return left
    }

    subscript(token: Token) -> Bool { tokens.contains(token) }

    func top(up amount: Cents) { balance += amount }

    struct Snapshot: Codable {
        let balance: Cents
        func text() -> String { "\(balance) ct" }
    }
}

extension Wallet where Token == String {
    func describe(prefix: String = "€", _ formatter: NumberFormatter? = nil) -> String {
        let number = NSNumber(value: balance)
        return prefix + (formatter?.string(from: number) ?? "\(number)")
    }
}

func transfer<T>(from source: Wallet<T>, to target: Wallet<T>, _ amount: Cents) throws -> (Cents, Cents) {
    guard amount < maximumBalance else { throw WalletError.empty }
    target.top(up: amount)
    return (source.balance, target.balance)
}
