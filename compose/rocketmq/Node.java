import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/** Name server and broker in one process: Node NAMESRV_CONF BROKER_CONF. */
public final class Node {
    public static void main(String[] args) throws Exception {
        NamesrvStartup.main0(new String[] {"-c", args[0]});
        BrokerStartup.main(new String[] {"-c", args[1]});
    }
}
