import Foundation

/// What the buyer did with the checkout sheet.
public enum CheckoutResult: Equatable {
    case completed(paymentID: String)
    case cancelled
    case failed(CheckoutError)
}

public enum CheckoutError: Error, Equatable {
    case sessionExpired
    case declined(code: String)
    case offline
}

/// A checkout that the merchant's server opened; the secret is good for one payment.
public struct CheckoutSession: Decodable {
    public let id: String
    public let clientSecret: String
    public let expiresAt: Date

    /// Sessions live for 20 minutes; the sheet refuses to open one that would expire while the buyer types.
    func isUsable(now: Date = Date(), margin: TimeInterval = 60) -> Bool {
        expiresAt.timeIntervalSince(now) > margin
    }
}

public final class CheckoutSheet {
    private let session: CheckoutSession
    private let transport: URLSession
    private let endpoint: URL

    public init(session: CheckoutSession, transport: URLSession = .shared) throws {
        guard session.isUsable() else { throw CheckoutError.sessionExpired }
        self.session = session
        self.transport = transport
        self.endpoint = URL(string: "https://checkout.heronpay.example/sessions/\(session.id)/confirm")!
    }

    /// Confirms the session with a card token. The card number itself never reaches the app.
    public func confirm(cardToken: String) async -> CheckoutResult {
        var request = URLRequest(url: endpoint)
        request.httpMethod = "POST"
        request.setValue("Bearer \(session.clientSecret)", forHTTPHeaderField: "Authorization")
        request.httpBody = try? JSONEncoder().encode(["card_token": cardToken])
        do {
            let (data, response) = try await transport.data(for: request)
            return Self.interpret(data, status: (response as? HTTPURLResponse)?.statusCode ?? 0)
        } catch {
            return .failed(.offline)
        }
    }

    static func interpret(_ data: Data, status: Int) -> CheckoutResult {
        let body = try? JSONDecoder().decode([String: String].self, from: data)
        switch status {
        case 200, 201:
            return .completed(paymentID: body?["payment_id"] ?? "")
        case 410:
            return .failed(.sessionExpired)
        case 422:
            return .failed(.declined(code: body?["code"] ?? "unknown"))
        default:
            return .failed(.offline)
        }
    }
}
