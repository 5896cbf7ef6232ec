#include "agents/mpi/tree/switch_tree.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/udp.hpp>
#include <asio/post.hpp>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

namespace coppice::mpi {
namespace {

// The first address of this node that others may reach; nullopt: it has none.
std::optional<asio::ip::address> OutwardAddress(bool is_v6) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  std::optional<asio::ip::address> found;
  for (const ifaddrs* at = all; at != nullptr && !found; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    if (at->ifa_addr->sa_family != (is_v6 ? AF_INET6 : AF_INET)) continue;
    char text[NI_MAXHOST] = "";
    const socklen_t length = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (getnameinfo(at->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    std::error_code error;
    const asio::ip::address address = asio::ip::make_address(text, error);
    const bool is_local =
        address.is_loopback() || (address.is_v6() && address.to_v6().is_link_local());
    if (!error && !is_local) found = address;
  }
  freeifaddrs(all);
  return found;
}

// All types have 1, 2, 4 or 8 bytes.
constexpr uint32_t kLongestElement = 8;
// Besides a window, or a result: hello and answers to pings, or what is said of the agreement.
constexpr size_t kOtherMemberFrames = 16;
// Of what a member says to member 0 before a result is asked for; a buffer for each is kept there.
constexpr uint32_t kShortMessage = 64;
// Between two looks for messages of the program, while it waits.
constexpr std::chrono::microseconds kShortestPause{50}, kLongestPause{1000};

// Signals are for the program's own threads. None if there is none to be had.
std::thread ThreadWithoutSignals(asio::io_context* io) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread([io] {
      const auto work = asio::make_work_guard(*io);
      io->run();
    });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// The program and its MPI need theirs.
bool HasDescriptorsFor(uint32_t members) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  const auto count = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  return count + members <= limit.rlim_cur / 2;
}

SharedBytes KeyBytes(const LinkKey& key) {
  return std::make_shared<const std::string>(key.data(), key.size());
}

}  // namespace

// --- to begin and to end -----------------------------------------------------------------------

std::unique_ptr<SwitchTree> SwitchTree::Open(const SwitchTreeOptions& options,
                                             std::string* trouble) {
  if (options.segment_bytes < kLongestElement || options.segment_bytes > kMaxPayloadBytes ||
      options.window == 0 || options.self >= options.members) {
    *trouble = "no segment, no window or no member";
    return nullptr;
  }
  std::unique_ptr<SwitchTree> tree(new SwitchTree(options));
  if (options.self == 0 && options.members > 1 && !tree->Listen(trouble)) return nullptr;
  tree->LookAtClock();
  tree->thread_ = ThreadWithoutSignals(&tree->io_);
  if (tree->thread_.joinable()) return tree;
  *trouble = "the system has no thread to give";
  return nullptr;
}

SwitchTree::SwitchTree(const SwitchTreeOptions& options)
    : options_(options),
      segment_bytes_(options.segment_bytes / kLongestElement * kLongestElement),
      peers_(options.members),
      agreement_(options.self, options.members),
      timer_(io_) {}

SwitchTree::~SwitchTree() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    listener_.reset();
    if (leaf_.link != nullptr) leaf_.link->Close();
    for (const Peer& peer : peers_) {
      if (peer.link != nullptr) peer.link->Close();
    }
    io_.stop();
  });
  thread_.join();
}

bool SwitchTree::Listen(std::string* trouble) {
  if (!HasDescriptorsFor(options_.members)) {
    *trouble = std::to_string(options_.members) +
               " members need more descriptors than half of what `ulimit -n` allows";
    return false;
  }
  LinkListener::Options options;
  options.max_strangers = std::max<size_t>(options.max_strangers, options_.members);
  std::error_code error;
  listener_ =
      LinkListener::Listen(&io_, options_.listen, options,
                           {[this](const std::shared_ptr<Link>& link, const FrameHeader& hello,
                                   const LinkKey& key) { OnHello(link, hello, key); },
                            [](Refusal) {}},
                           &error);
  if (listener_ == nullptr) *trouble = "listen " + options_.listen + ": " + error.message();
  return listener_ != nullptr;
}

// Nothing is sent: a datagram socket that connects is bound to the way there. A name may have
// addresses of a family at which member 0 does not listen. That of member 0's own node leads to
// 127.0.1.1 on Debian, where no other node finds it.
std::string SwitchTree::coordinator() const {
  std::string host, service;
  if (listener_ == nullptr || !SplitAddress(options_.leaf_address, &host, &service)) return "";
  asio::io_context io;
  std::error_code error;
  const auto family = options_.listen.starts_with('[') ? asio::ip::udp::v6() : asio::ip::udp::v4();
  const auto found = asio::ip::udp::resolver(io).resolve(family, host, service, error);
  if (error || found.empty()) return "";
  asio::ip::udp::socket socket(io);
  socket.connect(*found.begin(), error);
  if (error) return "";
  asio::ip::address own = socket.local_endpoint(error).address();
  asio::ip::make_address(host, error);
  const bool has_name = static_cast<bool>(std::exchange(error, {}));
  if (own.is_loopback() && has_name) own = OutwardAddress(own.is_v6()).value_or(own);
  const std::string text = own.is_v6() ? "[" + own.to_string() + "]" : own.to_string();
  return error ? "" : text + ":" + std::to_string(port());
}

bool SwitchTree::Join(const std::string& coordinator, std::string* trouble) {
  asio::post(io_, [this, coordinator] {
    ConnectLeaf();
    if (options_.self != 0) ConnectCoordinator(coordinator);
  });
  std::unique_lock lock(mutex_);
  const Clock::time_point end = Clock::now() + options_.join_within;
  WaitUntil(lock, [&] { return is_joined_.has_value() || Clock::now() >= end; });
  if (!is_joined_) trouble_ = "the switch or a member was not there in time";
  *trouble = trouble_;
  return is_joined_.value_or(false);
}

FrameHeader SwitchTree::OwnHeader(FrameKind kind) const {
  FrameHeader header;
  header.kind = kind;
  header.group = options_.group;
  header.child = options_.self;
  return header;
}

void SwitchTree::ConnectLeaf() {
  leaf_.socket.emplace(io_);
  ConnectTo(options_.leaf_address, *leaf_.socket, [this](const std::error_code& error) {
    asio::ip::tcp::socket socket = *std::exchange(leaf_.socket, std::nullopt);
    if (error) return FailToJoin("switch at " + options_.leaf_address + ": " + error.message());
    LinkBounds bounds;
    bounds.max_payload =
        std::max<uint32_t>(options_.segment_bytes, kMaxRefusalText + sizeof(uint32_t));
    bounds.max_queued = options_.window + kOtherMemberFrames;
    leaf_.link = std::make_shared<Link>(std::move(socket), bounds);
    leaf_.link->Start({[this](const FrameHeader& header, std::string_view payload) {
                         OnLeafFrame(header, payload);
                       },
                       [this](LinkEnd end) {
                         BreakTree(end == LinkEnd::kMalformed ? "the switch sent no frame"
                                                              : "the link to the switch is gone");
                       }});
    FrameHeader hello = OwnHeader(FrameKind::kHello);
    hello.child = options_.child;
    leaf_.link->Send(hello, KeyBytes(options_.key));
  });
}

void SwitchTree::ConnectCoordinator(const std::string& address) {
  coordinator_socket_.emplace(io_);
  ConnectTo(address, *coordinator_socket_, [this, address](const std::error_code& error) {
    asio::ip::tcp::socket socket = *std::exchange(coordinator_socket_, std::nullopt);
    if (error) return FailToJoin("member 0 at " + address + ": " + error.message());
    Peer& peer = peers_[0];
    LinkBounds bounds;
    bounds.max_payload = kMaxPayloadBytes;
    bounds.max_queued = options_.max_bytes / kMaxPayloadBytes + kOtherMemberFrames;
    peer.link = std::make_shared<Link>(std::move(socket), bounds);
    peer.reader.emplace(options_.max_bytes);
    peer.link->Start(PeerEvents(0));
    peer.link->Send(OwnHeader(FrameKind::kHello), KeyBytes(options_.key));
  });
}

void SwitchTree::OnHello(const std::shared_ptr<Link>& link, const FrameHeader& hello,
                         const LinkKey& key) {
  Refusal refusal = Refusal::kNone;
  if (hello.group.tree != options_.group.tree) refusal = Refusal::kNoSuchTree;
  if (hello.group.revision != options_.group.revision) refusal = Refusal::kStaleRevision;
  if (key != options_.key) refusal = Refusal::kWrongKey;
  const bool is_member = hello.child > 0 && hello.child < options_.members;
  if (!is_member) refusal = Refusal::kNoSuchChild;
  if (is_member && peers_[hello.child].is_welcome) refusal = Refusal::kChildTaken;
  if (refusal != Refusal::kNone) {
    // Closed at once: who has no key may have no descriptor of the program's.
    link->Refuse(options_.group, refusal, RefusalName(refusal));
    return link->Close();
  }
  Peer& peer = peers_[hello.child];
  peer.link = link;
  peer.reader.emplace(options_.max_bytes);
  peer.is_welcome = true;
  LinkBounds bounds;
  bounds.max_payload = kShortMessage;
  bounds.max_queued = options_.max_bytes / kMaxPayloadBytes + kOtherMemberFrames;
  link->HandOver(PeerEvents(hello.child), bounds);
  FrameHeader welcome = OwnHeader(FrameKind::kWelcome);
  welcome.child = kFromParent;
  link->Send(welcome);
  LookIfJoined();
}

void SwitchTree::LookIfJoined() {
  bool is_joined = leaf_.is_welcome;
  for (uint32_t member = 0; member < options_.members; ++member) {
    const bool is_peer = (options_.self == 0) != (member == 0);
    if (is_peer) is_joined &= peers_[member].is_welcome;
  }
  if (!is_joined) return;
  // Nobody else may come. Later, as the listener may be what calls.
  asio::post(io_, [this] { listener_.reset(); });
  const std::lock_guard lock(mutex_);
  if (!is_joined_) is_joined_ = true;
  changed_.notify_all();
}

void SwitchTree::FailToJoin(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_joined_) return;
  is_joined_ = false;
  trouble_ = why;
  changed_.notify_all();
}

std::string SwitchTree::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

// --- a collective ------------------------------------------------------------------------------

void SwitchTree::WaitUntil(std::unique_lock<std::mutex>& lock,
                           const std::function<bool()>& is_there) {
  // Short at first, as most results are: a member that waits long takes no processor.
  std::chrono::microseconds pause = kShortestPause;
  while (!changed_.wait_for(lock, pause, is_there)) {
    pause = std::min(2 * pause, kLongestPause);
    if (!options_.go_on_meanwhile) continue;
    lock.unlock();
    options_.go_on_meanwhile();
    lock.lock();
  }
}

Carried SwitchTree::Carry(const SwitchCollective& collective) {
  if (is_natively_) return {Carried::How::kNatively, nullptr, 0, false};
  const bool may_be =
      collective.number == next_ && collective.bytes <= options_.max_bytes &&
      collective.operation != ReductionOperation::kNone && collective.type != ElementType::kNone &&
      (collective.data.size() == collective.bytes ||
       (collective.data.empty() && collective.operation == ReductionOperation::kTake));
  std::unique_lock lock(mutex_);
  if (!may_be || !is_joined_.value_or(false)) return {};
  asio::post(io_, [this, &collective] { Begin(&collective); });
  WaitUntil(lock, [this] { return carried_.has_value(); });
  Carried carried = *std::exchange(carried_, std::nullopt);
  is_natively_ = carried.how == Carried::How::kNatively;
  if (carried.how == Carried::How::kAlongTree) ++next_;
  return carried;
}

void SwitchTree::Begin(const SwitchCollective* collective) {
  current_ = collective;
  segments_ = std::max<uint64_t>(1, (collective->bytes + segment_bytes_ - 1) / segment_bytes_);
  sent_ = received_ = 0;
  waits_since_ = Clock::now();
  Act(agreement_.Enter(collective->bytes));
}

uint64_t SwitchTree::SegmentAt(uint64_t number) const {
  return std::min(number * segment_bytes_, current_->bytes);
}

void SwitchTree::Contribute() {
  for (; sent_ < segments_ && sent_ - received_ < options_.window; ++sent_) {
    FrameHeader header = OwnHeader(FrameKind::kContribution);
    header.child = options_.child;
    header.operation = current_->operation;
    header.type = current_->type;
    // Of all members, whoever needs it: any of them may have to hand it on.
    header.wants_result = true;
    header.sequence = current_->number;
    header.segment = static_cast<uint32_t>(sent_);
    SharedBytes part;
    if (!current_->data.empty()) {
      const uint64_t begin = SegmentAt(sent_);
      part = std::make_shared<const std::string>(
          current_->data.substr(begin, SegmentAt(sent_ + 1) - begin));
    }
    leaf_.link->Send(header, std::move(part));
  }
}

void SwitchTree::OnLeafFrame(const FrameHeader& header, std::string_view payload) {
  const bool is_ours = header.group == options_.group && header.child == kFromParent;
  if (header.kind == FrameKind::kRefusal) return BreakTree(RefusalName(ParseRefusal(payload)));
  if (header.kind == FrameKind::kPing && payload.empty()) {
    FrameHeader pong = OwnHeader(FrameKind::kPong);
    pong.child = options_.child;
    return leaf_.link->Send(pong);
  }
  if (header.kind == FrameKind::kPong) return;
  if (header.kind == FrameKind::kWelcome && is_ours && !leaf_.is_welcome) {
    leaf_.is_welcome = true;
    return LookIfJoined();
  }
  const bool may_come = header.kind == FrameKind::kResult && is_ours && leaf_.is_welcome;
  may_come ? OnResult(header, payload) : BreakTree("the switch sent what may not come");
}

void SwitchTree::OnResult(const FrameHeader& header, std::string_view payload) {
  const bool is_awaited = current_ != nullptr && received_ < sent_ &&
                          header.sequence == current_->number && header.segment == received_ &&
                          header.operation == current_->operation &&
                          header.type == current_->type &&
                          payload.size() == SegmentAt(received_ + 1) - SegmentAt(received_);
  if (!is_awaited) return BreakTree("the switch sent a result that was not awaited");
  result_.append(payload);
  waits_since_ = Clock::now();
  if (++received_ < segments_) return Contribute();
  Act(agreement_.ResultCame(std::make_shared<const std::string>(std::move(result_))));
}

void SwitchTree::BreakTree(std::string_view why) {
  {
    const std::lock_guard lock(mutex_);
    if (trouble_.empty()) trouble_ = why;
  }
  FailToJoin(std::string(why));
  if (leaf_.link != nullptr) std::exchange(leaf_.link, nullptr)->Close();
  Act(agreement_.TreeBroke());
}

void SwitchTree::Leave() {
  asio::post(io_, [this] { Act(agreement_.Leave()); });
}

bool SwitchTree::HasEnded() const {
  const std::lock_guard lock(mutex_);
  return has_parted_ && std::ranges::all_of(parting_, [](const std::weak_ptr<Link>& link) {
           return link.expired();
         });
}

// --- the agreement -----------------------------------------------------------------------------

Link::Events SwitchTree::PeerEvents(uint32_t member) {
  return {[this, member](const FrameHeader& header, std::string_view payload) {
            OnPeerFrame(member, header, payload);
          },
          [this, member](LinkEnd) { LosePeer(member); }};
}

void SwitchTree::OnPeerFrame(uint32_t member, const FrameHeader& header, std::string_view payload) {
  Peer& peer = peers_[member];
  if (header.kind == FrameKind::kWelcome && !peer.is_welcome) {
    peer.is_welcome = true;
    return LookIfJoined();
  }
  const FrameKind expected = member == 0 ? FrameKind::kResult : FrameKind::kContribution;
  AgreementMessage message;
  auto state = AgreementReader::State::kMalformed;
  if (header.kind == expected && header.group == options_.group && peer.is_welcome) {
    state = peer.reader->Take(payload, &message);
  }
  if (state == AgreementReader::State::kMalformed) return LosePeer(member);
  waits_since_ = Clock::now();  // a long result comes in many parts
  if (state == AgreementReader::State::kMessage) Act(agreement_.MessageFrom(member, message));
}

void SwitchTree::LosePeer(uint32_t member) {
  if (peers_[member].link != nullptr) std::exchange(peers_[member].link, nullptr)->Close();
  FailToJoin("member " + std::to_string(member) + " is gone");
  Act(agreement_.LinkGone(member));
}

void SwitchTree::Act(const AgreementActions& actions) {
  for (const AgreementAction& action : actions) {
    switch (action.kind) {
      case AgreementAction::Kind::kSend:
        Send(action);
        break;
      case AgreementAction::Kind::kContribute:
        result_.clear();
        Contribute();
        break;
      case AgreementAction::Kind::kLeaveTree:
        if (leaf_.link != nullptr) std::exchange(leaf_.link, nullptr)->Close();
        break;
      case AgreementAction::Kind::kComplete:
        End({Carried::How::kAlongTree, action.result, 0,
             agreement_.state().phase != Agreement::Phase::kWhole});
        break;
      case AgreementAction::Kind::kGoNatively:
        End({Carried::How::kNatively, nullptr, 0, false});
        break;
      case AgreementAction::Kind::kAbort:
        End({Carried::How::kLost, nullptr, action.member, false});
        break;
      case AgreementAction::Kind::kEnd:
        Part();
        break;
    }
  }
  if (std::exchange(phase_, agreement_.state().phase) != phase_) waits_since_ = Clock::now();
}

void SwitchTree::Send(const AgreementAction& action) {
  FrameHeader header =
      OwnHeader(options_.self == 0 ? FrameKind::kResult : FrameKind::kContribution);
  if (options_.self == 0) header.child = kFromParent;
  const std::vector<SharedBytes> payloads = PayloadsOf(action.message);
  for (const uint32_t member : action.to) {
    const std::shared_ptr<Link> link = peers_[member].link;
    if (link == nullptr) continue;
    if (action.message.kind == AgreementMessage::Kind::kFetch) {
      LinkBounds bounds;
      bounds.max_payload = kMaxPayloadBytes;
      bounds.max_queued = options_.max_bytes / kMaxPayloadBytes + kOtherMemberFrames;
      link->HandOver(PeerEvents(member), bounds);
    }
    for (const SharedBytes& payload : payloads) link->Send(header, payload);
  }
}

void SwitchTree::End(Carried carried) {
  current_ = nullptr;
  const std::lock_guard lock(mutex_);
  carried_ = std::move(carried);
  changed_.notify_all();
}

void SwitchTree::Part() {
  listener_.reset();
  std::vector<std::weak_ptr<Link>> parting;
  // A long result that other members lack may be on its way to many.
  const auto leave = [&](std::shared_ptr<Link>* place) {
    const std::shared_ptr<Link> link = std::exchange(*place, nullptr);
    if (link == nullptr) return;
    link->Leave(options_.patience);
    parting.push_back(link);
  };
  leave(&leaf_.link);
  for (Peer& peer : peers_) leave(&peer.link);
  const std::lock_guard lock(mutex_);
  parting_ = std::move(parting);
  has_parted_ = true;
}

// Late is who was so at the look before, too: a process that was stopped itself has what came
// meanwhile to read first.
void SwitchTree::LookAtClock() {
  const Agreement::Wait wait = agreement_.wait();
  // Member 0 asks, then fetches, and tells the others whom it waited for in vain.
  const int times = wait == Agreement::Wait::kAgreement && options_.self != 0 ? 3 : 1;
  const bool is_late =
      wait != Agreement::Wait::kNothing && Clock::now() - waits_since_ >= options_.patience * times;
  if (is_late && was_late_) Act(agreement_.PatienceOver());
  was_late_ = is_late;
  timer_.expires_after(options_.patience / 4);
  timer_.async_wait([this](const std::error_code& error) {
    if (!error) LookAtClock();
  });
}

}  // namespace coppice::mpi
